//===- ProductRows.h - rows of a matmul -------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTROWS_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTROWS_H

#include "backends/cpu/kernels/matmul/Panel.h"

#include <functional>

namespace mica::cpu {

/// The rows [from, to) of a matmul.
struct ProductRows {
  mlir::Value x; ///< the last dimension is K
  mlir::Value from, to;
  /// Maps the index of a row to its name; null: identity.
  std::function<mlir::Value(mlir::Value)> name = {};
  /// The leading indices in x of the row with that name; null: the name.
  std::function<llvm::SmallVector<mlir::Value>(mlir::Value)> at = {};

  mlir::Value nameOf(mlir::Value number) const { return name ? name(number) : number; }
  llvm::SmallVector<mlir::Value> indicesOf(mlir::Value named) const {
    return at ? at(named) : llvm::SmallVector<mlir::Value>{named};
  }
};

/// Takes the sums [panels] of 16 columns, starting at `column` of a block, of the row with that
/// name.
using StoreBlockSums = llvm::function_ref<void(mlir::Value block, mlir::Value name,
                                               mlir::Value column, llvm::ArrayRef<mlir::Value>)>;

/// Blocks [from, to) of a weight. The panels of a block, of 64 columns each, and those of
/// consecutive blocks are contiguous in memory.
struct BlockSpan {
  mlir::Value from, to;
  int64_t panels = 1; ///< per block
};
using PanelsOfBlock = llvm::function_ref<llvm::SmallVector<PackedPanel>(mlir::Value block)>;

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTROWS_H
