//===- Phases.h - the attributes that tell few rows from many ----*- C++ -*-===//

#ifndef MICA_PASSES_KERNELS_PHASES_H
#define MICA_PASSES_KERNELS_PHASES_H

#include "llvm/ADT/StringRef.h"

namespace mica {

/// On a module: the most rows that its `_few` functions are called for, as in decoding.
inline constexpr llvm::StringLiteral kCrossingAttr = "mica.crossing";

/// On a function: the most rows it is called for; functions without it take any number.
inline constexpr llvm::StringLiteral kMaxRowsAttr = "mica.max_rows";

/// On a module: the most rows of integers that generated kernels multiply by vectors where the
/// target has tile registers. Without it: KernelCosts::vectorRows.
inline constexpr llvm::StringLiteral kVectorRowsAttr = "mica.vector_rows";

} // namespace mica

#endif // MICA_PASSES_KERNELS_PHASES_H
