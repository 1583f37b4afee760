//===- LinearAttention.h - the kernel of linear attention -------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// q and k [T, G, K], v [T, H, V], decay [T, H], (beta [T, H]), sequences, positions, layer, y
/// [T, H, V], state [L, B, H, E]: formula of mica.linear_attention. A task is a head, for which it
/// takes the rows in their order: each adds to the ring, and reads the matrix at the last multiple
/// of 32 positions and the ring since then. So bits do not depend on how a text is cut into calls.
void emitLinearAttention(KernelBuilder &b, mlir::ValueRange args, RecurrentStateType type,
                         bool hasBeta);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_LINEARATTENTION_H
