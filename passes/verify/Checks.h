//===- Checks.h - what the verifiers of several stages check ----*- C++ -*-===//

#ifndef MICA_PASSES_VERIFY_CHECKS_H
#define MICA_PASSES_VERIFY_CHECKS_H

#include "passes/Passes.h"

namespace mlir {
class DataFlowSolver;
} // namespace mlir

namespace mica {

/// A cache is a value that at most one op consumes; fails, naming that op, when another op uses the
/// cache afterwards.
llvm::LogicalResult verifyCachesAreLinear(mlir::ModuleOp module);

/// Every function that can be entered from outside is a step of the model: by their roles it takes
/// tokens, sequences, positions, logit_indices, caches and, where a scaling of rope follows them,
/// lengths, and returns logits and the same caches. At least one must be there.
llvm::LogicalResult verifyEntries(mlir::ModuleOp module);

/// How many logits a step has: the model's number of tokens.
int64_t getVocabulary(mlir::ModuleOp module);

/// What `mica.model` says, if it is there, is complete and inside its bounds.
llvm::LogicalResult verifyDescription(mlir::ModuleOp module);

/// Fails at the first op that is not among `legal`, the names of dialects and of single ops.
llvm::LogicalResult verifyLegalOps(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> legal,
                                   llvm::StringRef stage);

/// No function is recursive, directly or indirectly: a step of the model terminates, and memory can
/// be planned for it.
llvm::LogicalResult verifyNoRecursion(mlir::ModuleOp module);

/// Lets `solver` follow what verifyIndices and verifyRoles ask for: one run serves both.
void loadIndexAnalysis(mlir::DataFlowSolver &solver);
void loadRoleAnalysis(mlir::DataFlowSolver &solver);

/// Every index of a layer, of a weight in a list or of an expert is known to be inside its
/// bounds, whatever calls and loops lead to it.
llvm::LogicalResult verifyIndices(mlir::ModuleOp module, const mlir::DataFlowSolver &solver);

/// Every op takes the row vector of its role (tokens, sequences, positions, logit_indices,
/// lengths), and the logits are those of the rows in logit_indices.
llvm::LogicalResult verifyRoles(mlir::ModuleOp module, const mlir::DataFlowSolver &solver);

/// Entries return each cache that they receive, in its place.
llvm::LogicalResult verifyCachesReturned(mlir::ModuleOp module);

/// No attention looks further back than the windows of its caches.
llvm::LogicalResult verifyWindows(mlir::ModuleOp module);

/// A step appends to every layer of a cache once at most.
llvm::LogicalResult verifySingleAppend(mlir::ModuleOp module);

/// The checks that all stages of mica ops share: entries, calls, caches, indices
/// and roles.
llvm::LogicalResult verifyStep(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CHECKS_H
