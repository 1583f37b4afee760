//===- ScoringProcess.h - a compiled program that answers with logits -*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_SCORINGPROCESS_H
#define MICA_TOOLS_QUALITY_SCORINGPROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mica::tool {

/// A child process that runs `PROGRAM score` (backends/runtime/commands/Score.h). Computes only
/// between `ask` and the last row read: two of them can be asked in turn without disturbing each
/// other.
class ScoringProcess {
public:
  static llvm::Expected<std::unique_ptr<ScoringProcess>> start(std::string path,
                                                               std::vector<std::string> options);
  /// Waits for the process to exit, and forwards its stderr.
  ~ScoringProcess();
  ScoringProcess(const ScoringProcess &) = delete;
  ScoringProcess &operator=(const ScoringProcess &) = delete;

  /// Goes back to `length` positions, feeds `ids` after them, as parts of a text of `total`
  /// positions, and asks for the logits of ids[first] and all after. They must be read before the
  /// next question.
  llvm::Error ask(size_t length, size_t total, size_t first, llvm::ArrayRef<int32_t> ids);
  /// Reads whole rows of logits. Errors are the program's own.
  llvm::Error read(llvm::MutableArrayRef<float> rows);
  /// Has the process end, so that files that it writes are whole. Errors are the program's own.
  llvm::Error finish();

private:
  explicit ScoringProcess(std::string path) : path(std::move(path)) {}
  llvm::Error spawn(std::vector<std::string> options);
  /// Why the process ended before it had answered.
  llvm::Error failure();
  llvm::Error failureOf(int status);
  int wait();

  std::string path;
  int requests = -1, rows = -1; ///< a socket, as a pipe without reader would end this process
  int messages = -1;            ///< its stderr, a file in memory
  pid_t process = -1;
};

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_SCORINGPROCESS_H
