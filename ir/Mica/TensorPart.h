//===- TensorPart.h - sources of weights ------------------------*- C++ -*-===//
//
// A weight consists of sources. Most are tensors of the checkpoint. Some checkpoints store several
// matrices in one tensor, or a matrix transposed; then a source is a part of a tensor. In the IR, a
// source is the name of a tensor or a #mica.slice of it (MicaAttrs.td).
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
  /// Rows [first, last) of every `period` rows; all if the period is 0.
  int64_t first = 0, last = 0, period = 0;
  /// Whether those rows become the columns.
  bool asColumns = false;

  /// The part that `source` names, a StringAttr or a SliceAttr.
  static TensorPart of(mlir::Attribute source);
  /// The source for this part: a StringAttr if it is a whole tensor, else a SliceAttr.
  mlir::Attribute source(mlir::MLIRContext *context) const;

  bool isWhole() const { return !entry && !transposed && period == 0; }
  /// The shape of this part of a tensor with shape `shape`; nullopt if the tensor has no such part.
  std::optional<llvm::SmallVector<int64_t>> shapeIn(llvm::ArrayRef<int64_t> shape) const;
  /// The shape of the tensor whose part has shape `shape`. If the part is an entry, the tensor has
  /// `entries` entries.
  llvm::SmallVector<int64_t> shapeAround(llvm::ArrayRef<int64_t> shape, int64_t entries = 0) const;
  /// For messages: "experts.gate_up_proj[3]^T[0:1 of 2]".
  std::string text() const;
  /// The row of the (transposed) matrix that corresponds to row `row` of the part, before rows
  /// become columns.
  int64_t rowOf(int64_t row) const {
    return period == 0 ? row : row / (last - first) * period + first + row % (last - first);
  }
};

/// Whether a tensor with shape `stored` can be used as a tensor with shape `shape`: if they are
/// equal, or if a matrix is stored with an axis of size one in between (filters [C, K] as [C, 1,
/// K]) or as a vector (norm weights [G, D] of groups).
bool isStoredAs(llvm::ArrayRef<int64_t> stored, llvm::ArrayRef<int64_t> shape);

} // namespace mica

#endif // MICA_IR_MICA_TENSORPART_H
