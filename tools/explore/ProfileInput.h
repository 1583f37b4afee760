//===- ProfileInput.h - profiles of programs --------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_PROFILEINPUT_H
#define MICA_TOOLS_EXPLORE_PROFILEINPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica::explore {

/// Reads and checks a file written by `PROGRAM bench --profile-json`. Errors name the file; one of
/// them is a program with other code than that of `codeHash`.
llvm::Expected<llvm::json::Value> readProfile(llvm::StringRef path, uint64_t codeHash);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_PROFILEINPUT_H
