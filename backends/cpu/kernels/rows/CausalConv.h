//===- CausalConv.h - the kernel of causal convolutions ---------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_CAUSALCONV_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_CAUSALCONV_H

#include "backends/cpu/kernels/KernelBuilder.h"

namespace mica::cpu {

/// Channels per task.
inline constexpr int64_t kConvChannels = 64;

/// x [T, C], weight [C, K], (bias [C]), sequences, positions, layer, y [T, C], state [L, B, R, C]:
/// formula of mica.causal_conv1d. A task is a block of channels; it processes the rows in order,
/// and stores each row in the ring buffer before reading from it, so that results do not depend on
/// how a sequence is split into calls.
void emitCausalConv1d(KernelBuilder &b, mlir::ValueRange args, bool bias);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_CAUSALCONV_H
