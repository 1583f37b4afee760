//===- Checks.h - what the verifiers of several stages check -----*- C++ -*-===//

#ifndef MICA_PASSES_VERIFY_CHECKS_H
#define MICA_PASSES_VERIFY_CHECKS_H

#include "passes/Passes.h"

namespace mica {

/// A cache is a value that at most one op consumes; fails, naming that op, when another op uses the
/// cache afterwards.
llvm::LogicalResult verifyCachesAreLinear(mlir::ModuleOp module);

/// Every function that can be entered from outside is a step of the model:
/// (tokens, sequences, positions, outputs, caches...) -> (logits, the same caches...). At least one
/// must be there.
llvm::LogicalResult verifyEntries(mlir::ModuleOp module);

/// Fails at the first op whose dialect is not among `dialects`.
llvm::LogicalResult verifyDialects(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> dialects,
                                   llvm::StringRef stage);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CHECKS_H
