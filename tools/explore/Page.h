//===- Page.h - a compilation as a web page ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_PAGE_H
#define MICA_TOOLS_EXPLORE_PAGE_H

#include "tools/explore/Record.h"

#include "llvm/Support/JSON.h"

namespace mica::explore {

/// The data of the page as JSON, described by docs/explore.md. `profile` may be null.
std::string pageData(const Record &record, const llvm::json::Value &profile);

/// A page that needs no network access: the files of page/, and `data`, compressed.
llvm::Expected<std::string> makePage(llvm::StringRef title, llvm::StringRef data);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_PAGE_H
