//===- HubName.h - OWNER/NAME[:SELECTION] -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_HUBNAME_H
#define MICA_TOOLS_HUB_HUBNAME_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica::hub {

/// A model of the hub, or a file of it.
struct HubName {
  std::string owner, name;
  std::string selection; ///< a file of the repository or a quantization; empty: the model folder

  /// "OWNER/NAME", as URLs have it.
  std::string repository() const { return owner + "/" + name; }
  /// As it was written.
  std::string text() const { return repository() + (selection.empty() ? "" : ":" + selection); }
};

/// Parses OWNER/NAME[:SELECTION]. Refuses what the hub accepts as no name, and selections that
/// lead out of the repository.
llvm::Expected<HubName> parseHubName(llvm::StringRef text);

/// Whether `text`, of which nothing exists as a path, is meant as a name of the hub: not
/// `folder/model.gguf` or `folder/model.mlir`.
bool isHubName(llvm::StringRef text);

/// Whether `path`, of a listing or a selection, is relative and stays inside its folder: without
/// empty, `.` or `..` components, backslashes and control characters.
bool isSafePath(llvm::StringRef path);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HUBNAME_H
