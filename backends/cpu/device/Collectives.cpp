#include "backends/cpu/device/Collectives.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace mica::rt {

template <typename Body>
void Collectives::forEachRow(int64_t rows, int64_t bytes, const Body &body) const {
  // Below this size, starting threads takes longer than copying.
  constexpr int64_t much = int64_t(128) << 10;
  if (rows * bytes < much) {
    for (int64_t row = 0; row < rows; ++row)
      body(row);
    return;
  }
  pool.parallelFor(
      [](void *context, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          (*static_cast<const Body *>(context))(row);
      },
      const_cast<Body *>(&body), rows);
}

/// The rows without gaps.
const void *Collectives::packed(Rows rows) {
  if (rows.isContiguous())
    return rows.data;
  sent.resize(static_cast<size_t>(rows.count * rows.bytes));
  forEachRow(rows.count, rows.bytes, [&](int64_t row) {
    std::memcpy(&sent[static_cast<size_t>(row * rows.bytes)], rows[row],
                static_cast<size_t>(rows.bytes));
  });
  return sent.data();
}

Status Collectives::gather(const void *part, int64_t bytes, std::byte *all) {
  addReceived(bytes);
  return ranks.allGather(part, static_cast<uint64_t>(bytes), all);
}

Status Collectives::allGather(Rows part, Rows whole) {
  // The parts of a single row, without padding, are the row.
  if (part.count == 1 && ranks.size() * part.bytes == whole.bytes)
    return gather(part.data, part.bytes, whole.data);
  int64_t bytes = part.count * part.bytes;
  if (bytes == 0)
    return {};
  // The bytes of other ranks are copied to their places where they have been received.
  auto take = [&](const Communicator::Received &received) {
    int64_t column = received.rank * part.bytes, size = std::min(part.bytes, whole.bytes - column),
            begin = static_cast<int64_t>(received.at),
            end = begin + static_cast<int64_t>(received.bytes), first = begin / part.bytes,
            rows = (end + part.bytes - 1) / part.bytes - first;
    forEachRow(rows, part.bytes, [&](int64_t i) {
      // The first and the last row may be received in two pieces.
      int64_t start = (first + i) * part.bytes, from = std::max(begin - start, int64_t(0)),
              to = std::min(size, end - start);
      if (from < to)
        std::memcpy(whole[first + i] + column + from, received.data + (start + from - begin),
                    static_cast<size_t>(to - from));
    });
  };
  addReceived(bytes);
  return ranks.allGatherInPieces(packed(part), static_cast<uint64_t>(bytes), std::ref(take));
}

void Collectives::allSlice(Rows whole, Rows part) const {
  int64_t begin = std::min(ranks.rank() * part.bytes, whole.bytes),
          count = std::min(part.bytes, whole.bytes - begin);
  forEachRow(part.count, part.bytes, [&](int64_t row) {
    std::memcpy(part[row], whole[row] + begin, static_cast<size_t>(count));
    std::memset(part[row] + count, 0, static_cast<size_t>(part.bytes - count));
  });
}

void Collectives::localRows(const int32_t *indices, int32_t *local, int64_t rows, int64_t n) const {
  int64_t first = ranks.rank() * n;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t index = indices[row] - first;
    local[row] = index >= 0 && index < n ? static_cast<int32_t>(index) : 0;
  }
}

Status Collectives::shareRows(const int32_t *indices, Rows rows, int64_t n) {
  // A rank sends those that it has, in their order, and as many bytes as the rank that has most.
  std::vector<int64_t> counts(static_cast<size_t>(ranks.size()));
  places.resize(static_cast<size_t>(rows.count));
  for (int64_t row = 0; row < rows.count; ++row)
    places[static_cast<size_t>(row)] = counts[static_cast<size_t>(indices[row] / n)]++;
  int64_t bytes = *std::max_element(counts.begin(), counts.end()) * rows.bytes;
  sent.resize(static_cast<size_t>(bytes));
  received.resize(static_cast<size_t>(ranks.size() * bytes));
  auto offsetOf = [&](int64_t row) { return places[static_cast<size_t>(row)] * rows.bytes; };
  forEachRow(rows.count, rows.bytes, [&](int64_t row) {
    if (indices[row] / n == ranks.rank())
      std::memcpy(&sent[static_cast<size_t>(offsetOf(row))], rows[row],
                  static_cast<size_t>(rows.bytes));
  });
  if (Status done = gather(sent.data(), bytes, received.data()); !done)
    return done;
  forEachRow(rows.count, rows.bytes, [&](int64_t row) {
    int64_t rank = indices[row] / n;
    if (rank != ranks.rank())
      std::memcpy(rows[row], &received[static_cast<size_t>(rank * bytes + offsetOf(row))],
                  static_cast<size_t>(rows.bytes));
  });
  return {};
}

} // namespace mica::rt
