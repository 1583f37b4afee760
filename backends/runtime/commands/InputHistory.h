// The history of earlier conversations: a file with one turn per line.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H

#include "backends/runtime/support/Result.h"

#include <string>
#include <vector>

namespace mica::rt {

/// A newline within a turn is written as \n, a backslash as \\. Several programs may append to one
/// file.
class InputHistory {
public:
  explicit InputHistory(std::string path) : path(std::move(path)) {}

  /// The last turns, at most `maxTurns`; none if the file does not exist.
  Result<std::vector<std::string>> read(size_t maxTurns) const;
  /// Appends a turn. Only the owner can read the file.
  Status append(const std::string &turn) const;

private:
  std::string path;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H
