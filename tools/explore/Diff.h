//===- Diff.h - how two models or programs differ ---------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_DIFF_H
#define MICA_TOOLS_EXPLORE_DIFF_H

#include "tools/explore/Record.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace mica::explore {

/// One of two that are compared: a compiled program, of which the manifest is known, or a model,
/// whose compilation was recorded as well.
struct DiffSide {
  std::string path;
  llvm::json::Object manifest;
  std::optional<Record> record;
};

/// A program's or a record's manifest.
llvm::Expected<llvm::json::Object> parseManifestJson(llvm::StringRef text, llvm::StringRef path);

/// What differs: `config`, `bytes`, `kernels`, and of two models `weights` and `stages`.
/// Of those of `stages`, also the lines. `identical` says whether nothing differs.
llvm::json::Object diffOf(const DiffSide &a, const DiffSide &b, llvm::ArrayRef<std::string> stages);

/// The same for people.
std::string diffText(const llvm::json::Object &diff);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_DIFF_H
