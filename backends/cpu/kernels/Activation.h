//===- Activation.h - activations and gating --------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ACTIVATION_H
#define MICA_BACKENDS_CPU_KERNELS_ACTIVATION_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// Applies the activation function to a vector of f32.
mlir::Value emitActivation(KernelBuilder &b, mlir::Value x, Activation activation);

/// How a gate is combined with the up projection: activation(gate) * up, or, with limits, the
/// formula of `clamped` in mica.moe_experts.
struct Gating {
  struct Clamp {
    double alpha, limit;
  };
  Activation activation;
  std::optional<Clamp> clamp = std::nullopt;
};
mlir::Value emitGated(KernelBuilder &b, mlir::Value gate, mlir::Value up, const Gating &gating);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ACTIVATION_H
