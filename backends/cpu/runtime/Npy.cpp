#include "backends/cpu/runtime/Npy.h"
#include "backends/cpu/program/SignalCleanup.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

std::string npyHeader(int64_t rows, int64_t columns) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) +
                     ", " + std::to_string(columns) + "), }";
  constexpr size_t prefix = 10;
  text.resize(npyHeaderSize - prefix - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Error NpyWriter::failed() const {
  return Error{"cannot write the logits to '" + path + "': " + std::strerror(errno) +
               ", choose another file"};
}

Result<std::unique_ptr<NpyWriter>> NpyWriter::create(std::string path, int64_t columns,
                                                     const std::vector<int64_t> &capacities) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error{"cannot write the logits to '" + path +
                 "': not a regular file, choose another file"};
  std::unique_ptr<NpyWriter> writer(new NpyWriter(std::move(path), columns));
  std::string temporary = writer->path + ".tmp-" + std::to_string(getpid());
  unlink(temporary.c_str());
  writer->fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (writer->fd < 0)
    return writer->failed();
  writer->temporary = std::move(temporary);
  writer->cleanupSlot = program::protectTemporary(writer->temporary);
  int64_t first = 0;
  for (int64_t capacity : capacities) {
    writer->firstRow.push_back(first);
    first += capacity;
  }
  writer->rows.resize(capacities.size());
  return writer;
}

NpyWriter::~NpyWriter() {
  if (fd >= 0)
    close(fd);
  if (!temporary.empty())
    unlink(temporary.c_str());
  program::forgetTemporary(cleanupSlot);
}

uint64_t NpyWriter::rowOffset(int64_t row) const {
  return npyHeaderSize +
         static_cast<uint64_t>(row) * static_cast<uint64_t>(columns) * sizeof(float);
}

static bool writeAt(int fd, const void *data, size_t size, uint64_t offset) {
  const char *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes += written;
    size -= static_cast<size_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

Status NpyWriter::append(int64_t sequence, std::span<const float> values) {
  int64_t row = firstRow[sequence] + rows[sequence];
  if (!writeAt(fd, values.data(), values.size_bytes(), rowOffset(row)))
    return failed();
  rows[sequence] += static_cast<int64_t>(values.size()) / columns;
  return {};
}

Status NpyWriter::moveRows(int64_t from, int64_t to, int64_t count) {
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < count; ++i) {
    size_t bytes = row.size() * sizeof(float);
    if (pread(fd, row.data(), bytes, static_cast<off_t>(rowOffset(from + i))) !=
            static_cast<ssize_t>(bytes) ||
        !writeAt(fd, row.data(), bytes, rowOffset(to + i)))
      return failed();
  }
  return {};
}

/// Sequences that ended early have left room behind them.
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
  if (ftruncate(fd, static_cast<off_t>(rowOffset(total))) != 0 ||
      !writeAt(fd, header.data(), header.size(), 0))
    return failed();
  if (close(std::exchange(fd, -1)) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
    return failed();
  temporary.clear();
  return {};
}

} // namespace mica::rt
