#include "frontend/import/BuildOps.h"

#include "ir/Mica/Mica.h"
#include "ir/Mica/Names.h"

using namespace mlir;

namespace mica {

RankedTensorType rowsType(OpBuilder &builder, int64_t width) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, builder.getF32Type());
}

RankedTensorType perLayerInputsType(OpBuilder &builder, const ModelConfig &model,
                                    const PerLayerConfig &config) {
  auto layers = static_cast<int64_t>(model.layers.size());
  return RankedTensorType::get({ShapedType::kDynamic, layers, config.dim}, builder.getF32Type());
}

RankedTensorType indexRowsType(OpBuilder &builder) {
  return RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
}

void nameArguments(func::FuncOp function, llvm::ArrayRef<llvm::StringRef> names) {
  for (auto [argument, name] : llvm::zip(function.getArguments(), names))
    argument.setLoc(nameWithin(function.getLoc(), name));
}

Location layerLocation(OpBuilder &builder, const NamingTable &names, const llvm::Twine &module) {
  return NameLoc::get(builder.getStringAttr(names.layers + ".*." + module));
}

Value buildNorm(OpBuilder &builder, Location loc, Value x, Value weight, Value bias,
                const NormConfig &config) {
  FloatAttr eps = builder.getF64FloatAttr(config.eps);
  if (config.kind == NormKind::Layer)
    return LayerNormOp::create(builder, loc, x.getType(), x, weight, bias, eps);
  return RmsNormOp::create(builder, loc, x.getType(), x, weight, eps,
                           NormRoundingAttr::get(builder.getContext(), config.rounding),
                           builder.getF64FloatAttr(config.weightOffset));
}

Value buildScale(OpBuilder &builder, Location loc, Value x, double factor) {
  if (factor == 1)
    return x;
  return ScaleOp::create(builder, loc, x.getType(), x, builder.getF64FloatAttr(factor));
}

} // namespace mica
