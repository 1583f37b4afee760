//===- Activation.cpp - activations and gating ----------------------------===//

#include "backends/cpu/kernels/Activation.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

Value mica::cpu::emitActivation(KernelBuilder &b, Value x, Activation activation) {
  auto constant = [&](float value) { return b.splat(value); };
  switch (activation) {
  case Activation::Silu:
    return b.divf(x, b.addf(constant(1), b.exp(b.subf(constant(0), x))));
  case Activation::QuickGelu:
    return b.divf(x, b.addf(constant(1), b.exp(b.mulf(constant(-1.702f), x))));
  case Activation::Relu:
    return b.maxf(x, constant(0));
  case Activation::Relu2: {
    Value positive = b.maxf(x, constant(0));
    return b.mulf(positive, positive);
  }
  case Activation::Gelu: {
    Value error = math::ErfOp::create(b, b.mulf(x, constant(0.70710678118654752f)));
    return b.mulf(b.mulf(x, constant(0.5f)), b.addf(constant(1), error));
  }
  case Activation::GeluTanh: {
    Value cube = b.mulf(b.mulf(x, x), x);
    Value inner = b.mulf(constant(0.79788456080286536f), b.fma(cube, constant(0.044715f), x));
    return b.mulf(b.mulf(x, constant(0.5f)), b.addf(constant(1), math::TanhOp::create(b, inner)));
  }
  }
  llvm_unreachable("all activations are handled above");
}

Value mica::cpu::emitGated(KernelBuilder &b, Value gate, Value up, const Gating &gating) {
  if (!gating.clamp)
    return b.mulf(emitActivation(b, gate, gating.activation), up);
  auto [alpha, limit] = *gating.clamp;
  Value max = b.splat(static_cast<float>(limit)), min = b.splat(static_cast<float>(-limit)),
        one = b.splat(1);
  gate = b.minf(gate, max);
  Value scaledGate = b.mulf(gate, b.splat(static_cast<float>(-alpha)));
  Value open = b.divf(gate, b.addf(one, b.exp(scaledGate)));
  return b.mulf(open, b.addf(b.maxf(b.minf(up, max), min), one));
}
