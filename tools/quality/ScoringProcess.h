//===- ScoringProcess.h - programs that return logits -----------*- C++ -*-===//
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

/// A child process that runs `PROGRAM score` (backends/runtime/commands/Score.h). It only computes
/// between `ask` and the last row read, so that two of them can be used alternately without
/// disturbing each other.
class ScoringProcess {
public:
  static llvm::Expected<std::unique_ptr<ScoringProcess>> start(std::string path,
                                                               std::vector<std::string> options);
  /// Waits for the process to exit, and forwards its stderr.
  ~ScoringProcess();
  ScoringProcess(const ScoringProcess &) = delete;
  ScoringProcess &operator=(const ScoringProcess &) = delete;

  /// Truncates the sequence to `length` positions, appends `ids` as part of a text of `total`
  /// positions, and requests the logits of ids[first] and all following ids. They must be read
  /// before the next request.
  llvm::Error ask(size_t length, size_t total, size_t first, llvm::ArrayRef<int32_t> ids);
  /// Reads whole rows of logits. Errors are those of the program.
  llvm::Error read(llvm::MutableArrayRef<float> rows);
  /// Ends the process, so that files that it writes are complete. Errors are those of the program.
  llvm::Error finish();

private:
  explicit ScoringProcess(std::string path) : path(std::move(path)) {}
  llvm::Error spawn(std::vector<std::string> options);
  /// The reason why the process ended before it had answered.
  llvm::Error failure();
  llvm::Error failureOf(int status);
  int wait();

  std::string path;
  int requests = -1, rows = -1; ///< a socket, because a pipe without reader would end this process
  int messages = -1;            ///< its stderr, an in-memory file
  pid_t process = -1;
};

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_SCORINGPROCESS_H
