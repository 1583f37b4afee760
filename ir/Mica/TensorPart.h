//===- TensorPart.h - what a source of a weight is --------------*- C++ -*-===//
//
// A weight is made of sources. Most are tensors of the checkpoint; some checkpoints keep several
// matrices in one tensor, or a matrix transposed, and a source is a part of such a tensor. In the
// IR a source is the tensor's name, or a #mica.slice of it (MicaAttrs.td).
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_TENSORPART_H
#define MICA_IR_MICA_TENSORPART_H

#include "mlir/IR/Attributes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mica {

/// A tensor or a part of one: see #mica.slice for the order in which the members apply.
struct TensorPart {
  std::string tensor = {};
  std::optional<int64_t> entry = {};
  bool transposed = false;
  /// Rows [first, last) of every `period`; all where the period is 0.
  int64_t first = 0, last = 0, period = 0;
  /// Whether those rows become the columns.
  bool asColumns = false;

  /// The part that `source` names, a StringAttr or a SliceAttr.
  static TensorPart of(mlir::Attribute source);
  /// The source that names this part: a StringAttr where it is the whole tensor, else a SliceAttr.
  mlir::Attribute source(mlir::MLIRContext *context) const;

  bool isWhole() const { return !entry && !transposed && period == 0; }
  /// The shape of the part of a tensor of `shape`; nothing where it has no such part.
  std::optional<llvm::SmallVector<int64_t>> shapeIn(llvm::ArrayRef<int64_t> shape) const;
  /// The shape of the tensor whose part has `shape`: with `entries` on the first axis, where one of
  /// them is meant.
  llvm::SmallVector<int64_t> shapeAround(llvm::ArrayRef<int64_t> shape, int64_t entries = 0) const;
  /// For messages: "experts.gate_up_proj[3]^T[0:1 of 2]".
  std::string text() const;
  /// The row of the (transposed) matrix that is row `row` of the part, before rows become columns.
  int64_t rowOf(int64_t row) const {
    return period == 0 ? row : row / (last - first) * period + first + row % (last - first);
  }
};

/// Whether a tensor of shape `stored` is a matrix of `shape`: as it is, with an axis of one in
/// between, as filters [C, K] of a channel each are stored [C, 1, K], or as a vector, as gains
/// [G, D] of groups are stored.
bool isStoredAs(llvm::ArrayRef<int64_t> stored, llvm::ArrayRef<int64_t> shape);

} // namespace mica

#endif // MICA_IR_MICA_TENSORPART_H
