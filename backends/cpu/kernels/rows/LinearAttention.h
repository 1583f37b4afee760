//===- LinearAttention.h - the kernel of linear attention -------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// q and k [T, G, K], v [T, H, V], decay [T, H], (beta [T, H]), sequences, positions, layer, y [T,
/// H, V], state [L, B, H, E]: formula of mica.linear_attention. A task is a head; it processes the
/// rows in order, several rows of a chunk of 32 positions together. They are added to the ring, and
/// read the matrix before the chunk and the ring since then. Each row's sums have the same order
/// however many rows are computed together, so that results do not depend on how a sequence is
/// split into calls.
void emitLinearAttention(KernelBuilder &b, mlir::ValueRange args, RecurrentStateType type,
                         bool hasBeta);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H
