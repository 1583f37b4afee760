#include "frontend/families/RopeScaling.h"

#include "mlir/IR/Builders.h"

namespace mica {

static mlir::FloatAttr f64(mlir::MLIRContext *context, double value) {
  return mlir::Builder(context).getF64FloatAttr(value);
}

RopeScalingAttr LinearScaling::attribute(mlir::MLIRContext *context) const {
  return LinearScalingAttr::get(context, f64(context, factor));
}

RopeScalingAttr DynamicScaling::attribute(mlir::MLIRContext *context) const {
  return DynamicScalingAttr::get(context, f64(context, factor), original);
}

RopeScalingAttr YarnScaling::attribute(mlir::MLIRContext *context) const {
  return YarnScalingAttr::get(context, f64(context, factor), f64(context, betaFast),
                              f64(context, betaSlow), f64(context, attentionFactor), original,
                              highLimit, truncate);
}

RopeScalingAttr LongRopeScaling::attribute(mlir::MLIRContext *context) const {
  mlir::Builder builder(context);
  return LongRopeScalingAttr::get(context, builder.getDenseF64ArrayAttr(shortFactors),
                                  builder.getDenseF64ArrayAttr(longFactors),
                                  f64(context, attentionFactor), original);
}

RopeScalingAttr Llama3Scaling::attribute(mlir::MLIRContext *context) const {
  return Llama3ScalingAttr::get(context, f64(context, factor), f64(context, lowFrequency),
                                f64(context, highFrequency), original);
}

RopeScalingAttr ProportionalScaling::attribute(mlir::MLIRContext *context) const {
  return ProportionalScalingAttr::get(context, pairs, f64(context, factor));
}

} // namespace mica
