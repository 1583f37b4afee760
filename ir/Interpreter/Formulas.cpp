//===- Formulas.cpp - arithmetic shared by plain and fused ops ------------===//

#include "ir/Interpreter/Formulas.h"

#include <bit>
#include <cmath>
#include <numbers>

using namespace mlir;

namespace mica::interp {

const Tensor &asMultiplied(const Tensor &weight, mlir::Type rows, Tensor &rounded) {
  if (!isQuantized(weight.elementType, QuantizedUse::Weights) || !rows.isBF16())
    return weight;
  rounded = weight;
  for (float &value : rounded.floats) { // finite: to nearest, ties to even
    auto bits = std::bit_cast<uint32_t>(value);
    value = std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
  }
  return rounded;
}

double dot(ArrayRef<float> a, ArrayRef<float> b) {
  // Eight independent sums, to hide the latency of additions.
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= a.size(); i += 8)
    for (size_t j = 0; j < 8; ++j)
      sums[j] += double(a[i + j]) * double(b[i + j]);
  for (; i < a.size(); ++i)
    sums[0] += double(a[i]) * double(b[i]);
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::Silu:
    return x / (1 + std::exp(-x));
  case Activation::Gelu:
    return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
  case Activation::GeluTanh:
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case Activation::Relu:
    return x > 0 ? x : (std::isnan(x) ? x : 0);
  case Activation::Relu2:
    return x > 0 ? x * x : (std::isnan(x) ? x : 0);
  case Activation::QuickGelu:
    return x / (1 + std::exp(-1.702 * x));
  }
  llvm_unreachable("an activation without a formula");
}

double inverseRms(ArrayRef<float> x, double eps) {
  return 1 / std::sqrt(dot(x, x) / double(x.size()) + eps);
}

Angles anglesAt(int64_t position, ArrayRef<float> frequencies, double amplitude) {
  Angles result;
  for (float frequency : frequencies) {
    // The product is rounded to f32, as in training: at position 8000 the rounding error is
    // significant.
    float angle = static_cast<float>(position) * frequency;
    result.cosines.push_back(amplitude * std::cos(double(angle)));
    result.sines.push_back(amplitude * std::sin(double(angle)));
  }
  return result;
}

void rotate(MutableArrayRef<double> head, const Angles &angles, Pairing pairing) {
  size_t pairs = angles.cosines.size();
  for (size_t i = 0; i < pairs; ++i) {
    double &a = pairing == Pairing::Half ? head[i] : head[2 * i];
    double &b = pairing == Pairing::Half ? head[i + pairs] : head[2 * i + 1];
    double rotatedA = a * angles.cosines[i] - b * angles.sines[i];
    b = b * angles.cosines[i] + a * angles.sines[i];
    a = rotatedA;
  }
}

} // namespace mica::interp
