//===- TensorPart.h - what a source of a weight names -------------*- C++ -*-===//
//
// A weight is made of sources. Most are tensors of the checkpoint; some checkpoints keep several
// matrices in one tensor, or a matrix transposed, and a source is a part of such a tensor:
//
//   NAME                       the tensor
//   NAME[e]                    entry e of its first axis
//   NAME^T                     a matrix [K, N] read as [N, K]
//   NAME[first:last of period] rows [first, last) of every `period` rows
//   NAME[first:last of period]^T   a matrix of such rows [K, N] read as [N, K]
//
// in this order where several apply: "experts.gate_up_proj[3]^T[0:1 of 2]".
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_TENSORPART_H
#define MICA_IR_MICA_TENSORPART_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mica {

struct TensorPart {
  llvm::StringRef tensor;
  std::optional<int64_t> entry;
  bool transposed = false;
  /// Rows [first, last) of every `period`; all where the period is 0.
  int64_t first = 0, last = 0, period = 0;
  /// Whether those rows become the columns.
  bool turned = false;

  bool isWhole() const { return !entry && !transposed && period == 0; }
  /// The shape of the part of a tensor of `shape`; nothing where it has no such part.
  std::optional<llvm::SmallVector<int64_t>> shapeIn(llvm::ArrayRef<int64_t> shape) const;
  /// The shape of the tensor whose part has `shape`: with `entries` on the first axis, where one of
  /// them is meant.
  llvm::SmallVector<int64_t> shapeAround(llvm::ArrayRef<int64_t> shape, int64_t entries = 0) const;
  /// The part as it is written.
  std::string text() const;
  /// The row of the (transposed) matrix that is row `row` of the part, before that is turned.
  int64_t rowOf(int64_t row) const {
    return period == 0 ? row : row / (last - first) * period + first + row % (last - first);
  }
};

/// What `source` names; nothing where it is not written as above.
std::optional<TensorPart> parseTensorPart(llvm::StringRef source);

/// The tensor of which `source` is a part, whatever stands behind its name.
llvm::StringRef tensorOf(llvm::StringRef source);

} // namespace mica

#endif // MICA_IR_MICA_TENSORPART_H
