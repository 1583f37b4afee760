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

  /// "OWNER/NAME", as in URLs.
  std::string repository() const { return owner + "/" + name; }
  /// The name as typed by the user.
  std::string text() const { return repository() + (selection.empty() ? "" : ":" + selection); }
};

/// Parses OWNER/NAME[:SELECTION]. Rejects names that the hub does not allow, and selections outside
/// of the repository.
llvm::Expected<HubName> parseHubName(llvm::StringRef text);

/// Whether `text`, which is not an existing path, is a name on the hub: not `folder/model.gguf` or
/// `folder/model.mlir`.
bool isHubName(llvm::StringRef text);

/// Whether `path`, from a listing or a selection, is relative and within its folder: without empty,
/// `.` or `..` components, backslashes and control characters.
bool isSafePath(llvm::StringRef path);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HUBNAME_H
