//===- Texts.h - the page's files and the documentation ---------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_TEXTS_H
#define MICA_TOOLS_EXPLORE_TEXTS_H

#include "llvm/ADT/StringRef.h"

namespace mica::explore {

/// page/index.html, page/*.js, page/style.css.
extern const llvm::StringRef kPageMarkup, kPageScript, kPageStyle;
/// docs/dialect.md, docs/exec-dialect.md, docs/passes.md.
extern const llvm::StringRef kDialectDocs, kExecDocs, kPassDocs;

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_TEXTS_H
