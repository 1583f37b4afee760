//===- Driver.h - how fusion passes apply their patterns --------*- C++ -*-===//

#ifndef MICA_PASSES_FUSION_DRIVER_H
#define MICA_PASSES_FUSION_DRIVER_H

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mica {

/// Applies `patterns` until none matches. Constants are not merged, because each call of a layer
/// has its own.
inline llvm::LogicalResult applyFusion(mlir::Operation *op, mlir::RewritePatternSet &&patterns) {
  mlir::GreedyRewriteConfig config;
  config.enableConstantCSE(false).setRegionSimplificationLevel(
      mlir::GreedySimplifyRegionLevel::Disabled);
  config.setUseTopDownTraversal(true);
  return mlir::applyPatternsGreedily(op, std::move(patterns), config);
}

} // namespace mica

#endif // MICA_PASSES_FUSION_DRIVER_H
