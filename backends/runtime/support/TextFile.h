// Reads text files from users.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H

#include "backends/runtime/support/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// Reads a text file that is not larger than any context. `what` describes its content in errors,
/// `option` is the option that names it; with -f, `path` may be `-` for stdin.
Result<std::string> readTextFile(const std::string &path, const char *what, const char *option);

/// The lines of a file, readable from any position. Only input from a pipe is kept in memory.
class TextLines {
public:
  /// Like readTextFile, but a regular file may have any size.
  static Result<std::unique_ptr<TextLines>> open(const std::string &path, const char *what,
                                                 const char *option);
  /// `fd` is an open regular file, owned by the caller.
  TextLines(int fd, std::string path, const char *what, const char *option);
  ~TextLines();
  TextLines(const TextLines &) = delete;
  TextLines &operator=(const TextLines &) = delete;

  /// The next line with its newline, which the last one may lack; empty after the last one. Valid
  /// until the next call.
  Result<std::string_view> next();
  /// The number of bytes of the lines read so far.
  uint64_t place() const { return start + at; }
  void goTo(uint64_t place);

private:
  int fd;             ///< negative: all text is in `buffer`
  bool owned = false; ///< closed at the end
  std::string path;
  const char *what, *option;
  uint64_t origin = 0; ///< position in the file where the text begins
  std::string buffer;
  uint64_t start = 0; ///< of the buffer, in the text
  size_t at = 0;      ///< of the next line, in the buffer
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_TEXTFILE_H
