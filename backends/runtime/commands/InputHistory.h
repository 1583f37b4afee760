// The history of earlier conversations: a file with a turn per line.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H

#include "backends/runtime/support/Result.h"

#include <string>
#include <vector>

namespace mica::rt {

/// A line end within a turn is written \n, a backslash \\. Several programs may append to one file.
class InputHistory {
public:
  explicit InputHistory(std::string path) : path(std::move(path)) {}

  /// The last turns, `most` at most; none where there is no file.
  Result<std::vector<std::string>> read(size_t most) const;
  /// The file is its owner's to read.
  Status append(const std::string &turn) const;

private:
  std::string path;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_INPUTHISTORY_H
