#include "backends/runtime/support/Npy.h"

namespace mica::rt {

static constexpr std::string_view magic = "\x93NUMPY";

std::string npyHeader(int64_t rows, int64_t columns) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) +
                     ", " + std::to_string(columns) + "), }";
  constexpr size_t prefix = 10;
  text.resize(npyHeaderSize - prefix - 1, ' ');
  text += '\n';
  std::string header(magic);
  header += std::string_view("\x01\x00", 2);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Result<std::unique_ptr<NpyWriter>> NpyWriter::create(std::string path, int64_t columns,
                                                     const std::vector<int64_t> &capacities) {
  Result<std::unique_ptr<NewFile>> file =
      NewFile::create(std::move(path), {"the logits", ".npy file", magic});
  if (!file)
    return file.error();
  std::unique_ptr<NpyWriter> writer(new NpyWriter(*std::move(file), columns));
  int64_t first = 0;
  for (int64_t capacity : capacities) {
    writer->firstRow.push_back(first);
    first += capacity;
  }
  writer->rows.resize(capacities.size());
  return writer;
}

uint64_t NpyWriter::rowOffset(int64_t row) const {
  return npyHeaderSize +
         static_cast<uint64_t>(row) * static_cast<uint64_t>(columns) * sizeof(float);
}

Status NpyWriter::append(int64_t sequence, std::span<const float> values) {
  int64_t row = firstRow[sequence] + rows[sequence];
  if (Status done = file->writeAt(values.data(), values.size_bytes(), rowOffset(row)); !done)
    return done;
  rows[sequence] += static_cast<int64_t>(values.size()) / columns;
  return {};
}

Status NpyWriter::moveRows(int64_t from, int64_t to, int64_t count) {
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < count; ++i) {
    size_t bytes = row.size() * sizeof(float);
    Status moved = file->readAt(row.data(), bytes, rowOffset(from + i));
    if (moved)
      moved = file->writeAt(row.data(), bytes, rowOffset(to + i));
    if (!moved)
      return moved;
  }
  return {};
}

/// Moves rows together if sequences have fewer rows than reserved.
Status NpyWriter::closeGaps(int64_t &total) {
  total = 0;
  for (size_t s = 0; s < rows.size(); ++s) {
    if (firstRow[s] != total)
      if (Status moved = moveRows(firstRow[s], total, rows[s]); !moved)
        return moved;
    total += rows[s];
  }
  return {};
}

Status NpyWriter::commit() {
  int64_t total;
  if (Status closed = closeGaps(total); !closed)
    return closed;
  std::string header = npyHeader(total, columns);
  if (Status sized = file->resize(rowOffset(total)); !sized)
    return sized;
  if (Status written = file->writeAt(header.data(), header.size(), 0); !written)
    return written;
  return file->commit();
}

} // namespace mica::rt
