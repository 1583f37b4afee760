//===- Checks.h - checks that several stages share --------------*- C++ -*-===//

#ifndef MICA_PASSES_VERIFY_CHECKS_H
#define MICA_PASSES_VERIFY_CHECKS_H

#include "passes/Passes.h"
#include "passes/support/Stage.h"

namespace mlir {
class DataFlowSolver;
} // namespace mlir

namespace mica {

/// Every public function is a step of the model: its arguments are, by role, tokens, sequences,
/// positions, logit_indices, caches and, if a rope scaling depends on them, lengths; its results
/// are logits and the same caches. There must be at least one such function.
llvm::LogicalResult verifyEntries(mlir::ModuleOp module);

/// If the module has `mica.model`, it is complete and its values are within bounds.
llvm::LogicalResult verifyDescription(mlir::ModuleOp module);

/// Emits an error at the first op that is not in `legal`, which are names of the dialects and ops
/// of `stage`.
llvm::LogicalResult verifyLegalOps(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> legal,
                                   Stage stage);

/// Loads the analysis that verifyRoles needs, so that one run of `solver` serves it and
/// verifyIndices.
void loadRoleAnalysis(mlir::DataFlowSolver &solver);

/// Every op takes the row vector of its role (tokens, sequences, positions, logit_indices,
/// lengths), and the logits are those of the rows in logit_indices.
llvm::LogicalResult verifyRoles(mlir::ModuleOp module, const mlir::DataFlowSolver &solver);

/// The checks that all stages of mica ops share: entries, calls, caches, indices
/// and roles.
llvm::LogicalResult verifyStep(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CHECKS_H
