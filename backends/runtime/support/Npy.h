// Writes logits as a NumPy file.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_NPY_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_NPY_H

#include "backends/runtime/support/NewFile.h"

#include <span>
#include <string>
#include <vector>

namespace mica::rt {

/// The header of a version 1.0 .npy file of float32 [rows, columns] in C order: always
/// `npyHeaderSize` bytes. (numpy/lib/format.py describes the format.)
std::string npyHeader(int64_t rows, int64_t columns);
inline constexpr int64_t npyHeaderSize = 128;

/// Writes the rows of several sequences, which may be interleaved, sequence by sequence. The file
/// appears under its name only at `commit`; otherwise nothing is left.
class NpyWriter {
public:
  /// `capacities[s]`: maximum number of rows of sequence s.
  static Result<std::unique_ptr<NpyWriter>> create(std::string path, int64_t columns,
                                                   const std::vector<int64_t> &capacities);

  /// Appends whole rows to a sequence.
  Status append(int64_t sequence, std::span<const float> rows);
  Status commit();

private:
  NpyWriter(std::unique_ptr<NewFile> file, int64_t columns)
      : file(std::move(file)), columns(columns) {}
  uint64_t rowOffset(int64_t row) const;
  Status moveRows(int64_t from, int64_t to, int64_t count);
  Status closeGaps(int64_t &total);

  std::unique_ptr<NewFile> file;
  int64_t columns;
  std::vector<int64_t> firstRow; ///< reserved for each sequence, in rows
  std::vector<int64_t> rows;     ///< written so far, per sequence
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_NPY_H
