//===- Products.h - kernels of matmuls with packed weights ------*- C++ -*-===//
//
// All functions take the builder and the kernel's arguments (begin, end, buffers...) in the order
// of the comment, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTS_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTS_H

#include "backends/cpu/kernels/Activation.h"
#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// x [T, K], packed weight, (bias [N]), y [T, N]: y = x W^T + bias, or y += ... with `accumulate`.
/// A task is a block of 64 columns.
struct ProductSpec {
  WeightSpec weight;
  bool bias, accumulate;
};
void emitProduct(KernelBuilder &b, mlir::ValueRange args, const ProductSpec &spec);

/// x [T, K], packed gate and up, y [T, inner]: formula of mica.gated_linear. A task is a block of
/// 64 columns of y.
void emitGatedProduct(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight,
                      int64_t inner, Activation activation);

/// x [T, H, K], packed weight [H, ...], y [T, H, N]: formula of mica.head_linear. A task is a head
/// and a block of 64 columns; the blocks of a head are consecutive tasks.
void emitHeadProduct(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

/// The end of a gated matmul: stores 16 columns, starting at `column` of block `block`, computed
/// from `sums` of gate and up, to the row of y [..., inner] with the leading indices `at`.
void storeGated(KernelBuilder &b, llvm::ArrayRef<mlir::Value> sums, mlir::Value block,
                mlir::Value column, const Gating &gating, int64_t inner, mlir::Value y,
                llvm::SmallVector<mlir::Value> at);

/// sums [T, columns] computed by oneDNN for the columns starting at `first`, first, (bias [N]), y
/// [T, N]: the rest of emitProduct for those columns. A task is a row.
void emitEpilogue(KernelBuilder &b, mlir::ValueRange args, const ProductSpec &spec,
                  int64_t columns);

/// The same for a gated matmul: sums, first, y [T, inner].
void emitGatedEpilogue(KernelBuilder &b, mlir::ValueRange args, int64_t inner,
                       Activation activation, int64_t columns);

/// packed block-quantized weight, first block of 64 columns, panels [blocks][K / depth][64][depth]
/// of f32 or bf16: expands those blocks to floats. A task is a block.
void emitExpandBlocks(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTS_H
