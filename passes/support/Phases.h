//===- Phases.h - attributes of phases --------------------------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_PHASES_H
#define MICA_PASSES_SUPPORT_PHASES_H

#include "ir/Mica/EntrySignature.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace mica {

/// The numbers of rows for which functions are specialized. A backend may use others.
struct PhaseRows {
  /// The maximum number of rows for which generated kernels are used for all shapes.
  int64_t gemmThreshold = 32;
  /// The maximum number of rows of a decode call, at most `gemmThreshold`: attention is
  /// parallelized over single rows, which may be of several sequences. More rows usually belong to
  /// one prompt, whose attention is split into tiles of rows.
  int64_t smallBatch = 16;
};

/// On a module: the maximum number of rows for which generated kernels are used for all shapes. It
/// can be set before the functions are specialized. Default: PhaseRows::gemmThreshold.
inline constexpr llvm::StringLiteral kGemmThresholdAttr = "mica.gemm_threshold";

/// On a module: the maximum number of rows of its `_small` functions, as in decode; set as above.
/// Default: PhaseRows::smallBatch, or the GEMM threshold if that is smaller.
inline constexpr llvm::StringLiteral kSmallBatchAttr = "mica.small_batch";

/// On a function: the maximum number of rows it is called for; without it, any number.
inline constexpr llvm::StringLiteral kMaxRowsAttr = "mica.max_rows";

/// The value of one of these attributes of a module, or `otherwise` if it is absent. Emits an error
/// at the module unless it is a number of at least `min`.
mlir::FailureOr<int64_t> readRowsAttr(mlir::ModuleOp module, llvm::StringRef name, int64_t min,
                                      int64_t otherwise);

/// Whether the arithmetic of prefill differs from that of decode, if prefill multiplies
/// block-quantized weights by activations of type `promptRows` (see promptRowType).
bool dependsOnRole(mlir::ModuleOp module, mlir::Type promptRows);

/// The role of rows of a function; empty if there is none.
llvm::StringRef rowRoleOf(mlir::Operation *function);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_PHASES_H
