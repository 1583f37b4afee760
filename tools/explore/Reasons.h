//===- Reasons.h - descriptions of patterns ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_REASONS_H
#define MICA_TOOLS_EXPLORE_REASONS_H

#include "llvm/ADT/StringRef.h"

namespace mica::explore {

/// The comment of the pattern with that name, such as "add(r, product(...)) => product(...)
/// residual(r)"; empty if it has none with an arrow. Template arguments are ignored.
llvm::StringRef reasonOf(llvm::StringRef pattern);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_REASONS_H
