//===- Diff.h - differences of models and programs --------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_DIFF_H
#define MICA_TOOLS_EXPLORE_DIFF_H

#include "tools/explore/Record.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace mica::explore {

/// One side of a comparison: a compiled program, with its manifest, or a model, whose compilation
/// was recorded as well.
struct DiffSide {
  std::string path;
  llvm::json::Object manifest;
  std::optional<Record> record;
};

/// Parses the manifest of a program or a record.
llvm::Expected<llvm::json::Object> parseManifestJson(llvm::StringRef text, llvm::StringRef path);

/// The differences: `config`, `bytes`, `kernels`, and for two models `weights` and `stages`, with
/// the lines of those in `stages`; else `functions` at stage `kernels`, with their numbers of ops.
/// What only one side can have because the other one is a program is not a difference. `identical`
/// is true if there are none.
llvm::json::Object diffOf(const DiffSide &a, const DiffSide &b, llvm::ArrayRef<std::string> stages);

/// The differences as text.
std::string diffText(const llvm::json::Object &diff);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_DIFF_H
