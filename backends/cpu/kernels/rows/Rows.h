//===- Rows.h - kernels that process single rows ----------------*- C++ -*-===//
//
// All functions take the builder and the kernel's arguments (begin, end, buffers...) in the order
// of the comment, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_ROWS_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_ROWS_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// x [T, C] or [T, H, D], weight [C] or [H, D], y: formula of mica.rmsnorm. A task is a row.
struct RmsNormSpec {
  double eps;
  double weightOffset;
  bool roundBeforeWeight;
  int64_t rowBits = 0; ///< if the result is !mica.int_rows; 0: another type
};
void emitRmsNorm(KernelBuilder &b, mlir::ValueRange args, const RmsNormSpec &spec);

/// x, weight, (bias), y: formula of mica.layernorm. A task is a row.
void emitLayerNorm(KernelBuilder &b, mlir::ValueRange args, double eps, bool bias,
                   int64_t rowBits = 0);

/// x [T, C] or [T, H, D], y: formula of mica.l2norm. A task is a row.
void emitL2Norm(KernelBuilder &b, mlir::ValueRange args, double eps);

/// inputs..., y of one shape: y = compute(inputs), elementwise. A task is a row.
void emitElementwise(
    KernelBuilder &b, mlir::ValueRange args,
    llvm::function_ref<mlir::Value(KernelBuilder &, llvm::ArrayRef<mlir::Value>)> compute);

/// x, rows i32 [O], y [O, C]. A task is a row of y.
void emitSelectRows(KernelBuilder &b, mlir::ValueRange args);
/// x [T, H, D], index, y [T, D]: formula of mica.select_head. A task is a row.
void emitSelectHead(KernelBuilder &b, mlir::ValueRange args);
/// x [T, C], y: formula of mica.scale_parts. A task is a row.
void emitScaleParts(KernelBuilder &b, mlir::ValueRange args, llvm::ArrayRef<double> factors,
                    llvm::ArrayRef<int64_t> widths);
/// x [T, C], gate [T, 1] or [T, C], y: formula of mica.sigmoid_gate. A task is a row.
void emitSigmoidGate(KernelBuilder &b, mlir::ValueRange args);

/// x [T, H], bias [H], y: formula of mica.softplus. A task is a row.
void emitSoftplus(KernelBuilder &b, mlir::ValueRange args);
/// dt [T, H], a_log [H], y: formula of mica.decay. A task is a row.
void emitDecay(KernelBuilder &b, mlir::ValueRange args);
/// x [T, H, D], factors [T, H] or [H], y: formula of mica.scale_heads. A task is a row.
void emitScaleHeads(KernelBuilder &b, mlir::ValueRange args);

/// tokens i32 [T], table [V, C] or packed, y [T, C]. A task is a row.
void emitEmbedding(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &table);

/// x [T, K] or [T, J, K], y: formula of a mica.cast to !mica.int_rows of `rowBits` bits. A task is
/// a row.
void emitQuantize(KernelBuilder &b, mlir::ValueRange args, int64_t rowBits);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_ROWS_H
