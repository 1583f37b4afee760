//===- Activation.h - nonlinearities and gates in registers -----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ACTIVATION_H
#define MICA_BACKENDS_CPU_KERNELS_ACTIVATION_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// The nonlinearity on a vector of f32.
mlir::Value emitActivation(KernelBuilder &b, mlir::Value x, Activation activation);

/// What becomes of a gate and of what it lets through: activation(gate) * up, or, between limits,
/// what mica.moe_experts says of `clamped`.
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
