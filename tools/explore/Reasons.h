//===- Reasons.h - what patterns say that they do ---------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_REASONS_H
#define MICA_TOOLS_EXPLORE_REASONS_H

#include "llvm/ADT/StringRef.h"

namespace mica::explore {

/// "add(r, product(...)) => product(...) residual(r)", the comment of the pattern of that name;
/// empty where it has none with an arrow. Arguments of templates are ignored.
llvm::StringRef reasonOf(llvm::StringRef pattern);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_REASONS_H
