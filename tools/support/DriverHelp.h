//===- DriverHelp.h - --help of tools with MLIR's options -------*- C++ -*-===//
#ifndef MICA_TOOLS_SUPPORT_DRIVERHELP_H
#define MICA_TOOLS_SUPPORT_DRIVERHELP_H

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mica::tool {

/// Option and help text.
using HelpEntry = std::pair<std::string, std::string>;

/// The help of a tool that uses MLIR's option parser, whose own list has more than a thousand lines
/// of any width. It has the format of the other tools' help; --help-list prints MLIR's list.
struct DriverHelp {
  std::string tool, description, file, footer;
  /// Headings and entries; options of --help and --help-list are added.
  std::vector<std::pair<std::string, std::vector<HelpEntry>>> groups;

  std::string toText() const;
};

/// Whether --help is among the arguments.
bool asksForHelp(int argc, char **argv);

struct RegisteredPasses {
  std::vector<HelpEntry> passes, pipelines; ///< sorted by name
};

/// The registered passes and pipelines. Call it only once.
RegisteredPasses registeredPasses();

} // namespace mica::tool

#endif // MICA_TOOLS_SUPPORT_DRIVERHELP_H
