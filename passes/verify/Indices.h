//===- Indices.h - indices are within bounds --------------------*- C++ -*-===//
#ifndef MICA_PASSES_VERIFY_INDICES_H
#define MICA_PASSES_VERIFY_INDICES_H

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// Loads the analysis that verifyIndices needs, so that one run of `solver` serves it and
/// verifyRoles.
void loadIndexAnalysis(mlir::DataFlowSolver &solver);

/// Every index of a layer, a weight in a list or an expert is proven to be within bounds for all
/// calls and loops.
llvm::LogicalResult verifyIndices(mlir::ModuleOp module, const mlir::DataFlowSolver &solver);

} // namespace mica

#endif // MICA_PASSES_VERIFY_INDICES_H
