//===- Support.h - errors, paths, progress ----------------------*- C++ -*-===//
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

/// The body of a tool's main: prepares the process, runs `main` and returns its exit status. If a
/// thread cannot be created or LLVM has a fatal error, the process ends with an error line and
/// kFailed.
int runTool(llvm::function_ref<int()> main);

/// Prints `mica: error: MESSAGE` on one line to stderr, control characters escaped. Returns
/// kFailed.
int report(llvm::Error error);
/// The same, with `file: ` before a message that does not begin with its path or one of the others.
int report(llvm::StringRef file, llvm::Error error, llvm::ArrayRef<llvm::StringRef> others = {});

/// Prints `mica: error: MESSAGE; see COMMAND --help`. Returns kUsage.
int usage(const llvm::Twine &message, llvm::StringRef command = "mica");

/// Writes to stdout, which nothing else uses. Returns kDone, or reports an error.
int print(llvm::StringRef text);

/// The path of this tool's executable.
std::string toolPath(const char *argv0);

/// The path of the launcher of programs: ../lib/mica/mica-launcher relative to the tool.
llvm::Expected<std::string> launcherPath(const char *argv0);

/// A progress bar on a terminal; no output elsewhere. Removed when done.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar();
  /// `what` describes the current work, of which `share` in [0, 1] is done.
  void show(llvm::StringRef what, double share);
  /// Hides the bar until the next call of show().
  void hide();

private:
  bool terminal, shown = false;
  int lastPercent = -1;
  std::string last;
};

} // namespace mica::tool

#endif // MICA_TOOLS_SUPPORT_SUPPORT_H
