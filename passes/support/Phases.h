//===- Phases.h - the attributes that tell phases apart ---------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_PHASES_H
#define MICA_PASSES_SUPPORT_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace mica {

/// The numbers of rows for which functions are specialized. A backend may have others.
struct PhaseRows {
  /// The most rows that generated kernels multiply whatever the shape.
  int64_t gemmThreshold = 32;
  /// The most rows of a call that decodes, at most `gemmThreshold`: attention is cut for single
  /// rows of several sequences. More rows are mostly a prompt's, whose attention takes tiles of
  /// rows.
  int64_t few = 16;
};

/// On a module: the most rows that generated kernels multiply whatever the shape. A tool that
/// writes it before the functions are copied decides. Without it: PhaseRows::gemmThreshold.
inline constexpr llvm::StringLiteral kGemmThresholdAttr = "mica.gemm_threshold";

/// On a module: the most rows that its `_few` functions are called for, as in decoding; as above.
/// Without it: PhaseRows::few, or the GEMM threshold where that is less.
inline constexpr llvm::StringLiteral kFewRowsAttr = "mica.few_rows";

/// On a function: the most rows it is called for; functions without it take any number.
inline constexpr llvm::StringLiteral kMaxRowsAttr = "mica.max_rows";

/// On a function: the role of the rows it is called for, kPromptRole or kDecodeRole. Either all
/// functions have it or none: without it they take rows of both.
inline constexpr llvm::StringLiteral kRowRoleAttr = "mica.row_role";
inline constexpr llvm::StringLiteral kPromptRole = "prompt", kDecodeRole = "decode";

/// The rows that one of these attributes of a module states; `otherwise` where it has none. An
/// error at the module where it is not a number from `least` on.
mlir::FailureOr<int64_t> readRowsAttr(mlir::ModuleOp module, llvm::StringRef name, int64_t least,
                                      int64_t otherwise);

/// Whether rows of prompts are computed in another arithmetic than those of decoding.
bool dependsOnRole(mlir::ModuleOp module);

/// The role of rows stated on a function; empty where there is none.
llvm::StringRef rowRoleOf(mlir::Operation *function);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_PHASES_H
