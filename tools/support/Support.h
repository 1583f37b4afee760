//===- Support.h - errors, places, progress ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_SUPPORT_SUPPORT_H
#define MICA_TOOLS_SUPPORT_SUPPORT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica::tool {

/// Exit statuses of every command.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

/// What main of a tool consists of: prepares the process, runs `main` and gives its exit status.
/// Threads that cannot be started and fatal errors of LLVM end it with an error line and kFailed.
int runTool(llvm::function_ref<int()> main);

/// Prints `mica: error: MESSAGE` on one line to stderr, control characters escaped. Returns
/// kFailed.
int report(llvm::Error error);
/// The same, with `file: ` before a message that does not begin with the path of it or of one
/// of the others.
int report(llvm::StringRef file, llvm::Error error, llvm::ArrayRef<llvm::StringRef> others = {});

/// Prints `mica: error: MESSAGE; see COMMAND --help`. Returns kUsage.
int usage(const llvm::Twine &message, llvm::StringRef command = "mica");

/// Writes to stdout, on which nothing else writes. Returns kDone, or reports why it cannot.
int print(llvm::StringRef text);

/// This tool's own file.
std::string toolPath(const char *argv0);

/// The launcher that programs begin with: ../lib/mica/mica-launcher beside the tool.
llvm::Expected<std::string> launcherPath(const char *argv0);

/// A bar on a terminal; silent elsewhere. Removed when done.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar();
  /// `what` is going on and `share` of it, in [0, 1], is done.
  void show(llvm::StringRef what, double share);
  /// Until something is shown again.
  void hide();

private:
  bool terminal, shown = false;
  int lastPercent = -1;
  std::string last;
};

} // namespace mica::tool

#endif // MICA_TOOLS_SUPPORT_SUPPORT_H
