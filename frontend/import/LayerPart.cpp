#include "frontend/import/LayerPart.h"

#include "frontend/import/LayerSignature.h"
#include "ir/Mica/Activations.h"

using namespace mlir;

namespace mica {

Value LayerPart::linear(Value x, const llvm::Twine &module) const {
  Value w = weight(module + ".weight"), bias = weight(module + ".bias");
  auto type = rowsType(builder, cast<RankedTensorType>(w.getType()).getDimSize(0));
  return LinearOp::create(builder, at(module), type, x, w, bias, /*residual=*/Value(),
                          /*kernel=*/KernelKindAttr());
}

Value LayerPart::norm(Value x, llvm::StringRef module, const NormConfig &config) const {
  return buildNorm(builder, at(module), x, weight(module + ".weight"), weight(module + ".bias"),
                   config);
}

Value LayerPart::activate(Value x, Activation activation, Location loc) const {
  Value result;
  forEachActivationOp([&](auto op) {
    if (op.getActivation() == activation)
      result = decltype(op)::create(builder, loc, x);
  });
  return result;
}

Value LayerPart::heads(Value rows, int64_t count, int64_t size, const llvm::Twine &module) const {
  auto type = RankedTensorType::get({ShapedType::kDynamic, count, size}, builder.getF32Type());
  return SplitHeadsOp::create(builder, at(module), type, rows);
}

Value &LayerPart::state(llvm::StringRef name) const {
  llvm::SmallVector<LayerState, 4> states = layerStates(kind);
  return values.states[llvm::find_if(states, [&](const LayerState &s) { return s.name == name; }) -
                       states.begin()];
}

} // namespace mica
