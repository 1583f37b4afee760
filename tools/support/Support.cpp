//===- Support.cpp - errors, paths, progress ------------------------------===//

#include "tools/support/Support.h"

#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Process.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SignalCleanup.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <system_error>
#include <unistd.h>

using namespace llvm;

namespace mica::tool {

static constexpr const char *noThreads =
    "threads cannot be started; raise the limits of processes (ulimit -u) and memory (ulimit -v)";

/// LLVM cannot continue.
static void exitOnFatalError(void * /*data*/, const char *reason, bool /*crash*/) {
  bool threads = StringRef(reason).contains("pthread_create");
  // No test: a bug in LLVM.
  report(createStringError(threads ? noThreads
                                   : std::string("internal error: LLVM failed (") + reason +
                                         "); please report it"));
  rt::removeTemporaries();
  _exit(kFailed);
}

static void exitOutOfMemoryInLlvm(void * /*data*/, const char * /*reason*/, bool /*crash*/) {
  rt::exitOutOfMemory();
}

/// LLVM's streams ignore NO_COLOR (no-color.org).
static void disableColorsOnRequest() {
  const char *off = std::getenv("NO_COLOR");
  if (!off || !*off)
    return;
  outs().enable_colors(false);
  errs().enable_colors(false);
}

int runTool(function_ref<int()> main) {
  rt::prepareProcess();
  disableColorsOnRequest();
  rt::setProgramName(""); // Messages name the file that they refer to.
  install_fatal_error_handler(exitOnFatalError);
  install_bad_alloc_error_handler(exitOutOfMemoryInLlvm);
  int status = kFailed;
  try {
    status = main();
  } catch (const std::system_error &) {
    // Only creating a thread throws this.
    report(createStringError(noThreads));
  }
  // A failure to write to a closed stderr is not an error.
  errs().clear_error();
  return status;
}

int report(Error error) {
  rt::reportError(StringRef(toString(std::move(error))).rtrim("\n"));
  return kFailed;
}

/// Whether `message` begins with `file` or a path in it.
static bool names(StringRef message, StringRef file) {
  return message.consume_front(file) && (message.starts_with(":") || message.starts_with("/"));
}

int report(StringRef file, Error error, ArrayRef<StringRef> others) {
  std::string message = toString(std::move(error));
  bool named = names(message, file.rtrim('/')) || any_of(others, [&](StringRef other) {
                 return !other.empty() && names(message, other.rtrim('/'));
               });
  return report(createStringError(named ? message : (file + ": " + message).str()));
}

int usage(const Twine &message, StringRef command) {
  rt::reportError(rt::usageMessage(StringRef(message.str()).rtrim("\n").str(), command.str()));
  return kUsage;
}

int print(StringRef text) {
  rt::Status written = rt::writeOut(text);
  return written ? kDone : report(createStringError(written.error().message));
}

std::string toolPath(const char *argv0) {
  return sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&toolPath));
}

Expected<std::string> launcherPath(const char *argv0) {
  SmallString<128> path(sys::path::parent_path(sys::path::parent_path(toolPath(argv0))));
  sys::path::append(path, "lib", "mica", "mica-launcher");
  if (!sys::fs::exists(path))
    return createStringError(Twine(path) +
                             ": is missing; build the target mica-launcher or install Mica again");
  return path.str().str();
}

ProgressBar::ProgressBar() : terminal(isatty(STDERR_FILENO)) {}

ProgressBar::~ProgressBar() { hide(); }

void ProgressBar::hide() {
  if (shown)
    errs() << "\r\x1b[K";
  shown = false;
}

void ProgressBar::show(StringRef what, double share) {
  int percent = static_cast<int>(share * 100);
  if (!terminal || (percent == lastPercent && what == last))
    return;
  lastPercent = percent;
  last = what.str();
  shown = true;
  constexpr int width = 30;
  int full = percent * width / 100;
  errs() << "\r\x1b[K" << std::string(full, '#') << std::string(width - full, '.')
         << formatv(" {0,3} % ", percent) << what;
}

} // namespace mica::tool
