//===- Moe.h - kernels of mixtures of experts -------------------*- C++ -*-===//
//
// All functions take the builder and the kernel's arguments (begin, end, buffers...) in the order
// of the comment, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MOE_MOE_H
#define MICA_BACKENDS_CPU_KERNELS_MOE_MOE_H

#include "backends/cpu/kernels/Activation.h"
#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// logits [T, E], (correctionBias [E]), (expertScales [E]), weights [T, k], experts i32 [T, k]:
/// scoring, selection and normalization of mica.moe_gate. A task is a row.
struct GateSpec {
  Scoring scoring;
  int64_t experts, k;
  std::optional<float> normalizeEps; ///< is added to the divisor; none: not normalized
  bool correctionBias = false, expertScales = false;
  int64_t groups = 0, topkGroup = 0; ///< 0: no groups
  GroupScoring groupScoring = GroupScoring::Best;
};
void emitGate(KernelBuilder &b, mlir::ValueRange args, const GateSpec &spec);

/// experts i32 [T, k], order i32 [T, k], starts i32 [E + 1]: sorts the pairs (row, choice),
/// numbered row * k + choice, by expert; the pairs of expert e are order[starts[e] .. starts[e +
/// 1]). One task.
void emitRoute(KernelBuilder &b, mlir::ValueRange args, int64_t experts, int64_t k);

/// x [T, K], order, starts, packed gate and up [E, ...], (biases of gate and up [E, inner]), h [T,
/// k, inner]. A task is an expert and a block of 64 columns of h.
void emitExpertsUp(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight, int64_t inner,
                   const Gating &gating);

/// x [T, K], order, starts, packed up [E, ...], gates f32 [T, k, inner], (bias of up [E, inner]), h
/// [T, k, inner]: the same where gate and up are separate weights; `gates` contains the products
/// with gate.
void emitExpertsUpApart(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight,
                        const Gating &gating);

/// x [T, K] or, with a row for each choice, [T, k, K]; order, starts, packed weight [E, ...], (bias
/// [E, N]), y f32 [T, k, N]: the products with the chosen experts' matrices. A task is an expert
/// and a block of 64 columns.
void emitExpertsProduct(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

/// parts [T, k, C], weights [T, k], y [T, C]: y = sum_j weights_j parts_j, or y += with
/// `accumulate`. A task is a row.
void emitCombine(KernelBuilder &b, mlir::ValueRange args, bool accumulate);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MOE_MOE_H
