// Reads text files of users.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H

#include "backends/runtime/support/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// The text in a file, which may not be larger than anything that a context holds. `what` it is,
/// and the `option` that names another, are for the error; with -f, `path` may be `-`: stdin.
Result<std::string> readTextFile(const std::string &path, const char *what, const char *option);

/// The lines of a file, read again from any place. Only what comes from a pipe is kept in memory.
class TextLines {
public:
  /// As readTextFile, but a regular file may be of any size.
  static Result<std::unique_ptr<TextLines>> open(const std::string &path, const char *what,
                                                 const char *option);
  /// Of an open regular file, which stays the caller's.
  TextLines(int fd, std::string path, const char *what, const char *option);
  ~TextLines();
  TextLines(const TextLines &) = delete;
  TextLines &operator=(const TextLines &) = delete;

  /// The next line with its end, which the last one may lack; empty after the last one. Valid
  /// until the next call.
  Result<std::string_view> next();
  /// How many bytes the lines so far have.
  uint64_t place() const { return start + at; }
  void goTo(uint64_t place);

private:
  int fd;             ///< negative: all is in `buffer`
  bool owned = false; ///< closed at the end
  std::string path;
  const char *what, *option;
  uint64_t origin = 0; ///< where in the file the text begins
  std::string buffer;
  uint64_t start = 0; ///< of the buffer, in the text
  size_t at = 0;      ///< of the next line, in the buffer
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H
