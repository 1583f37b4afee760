// The results of `--batch`: one line of JSON for each text, in the order of the requests, on stdout
// or appended to a file that may hold the first of them already.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H

#include "backends/runtime/commands/BatchRequests.h"
#include "backends/runtime/support/TextFile.h"

#include <map>

namespace mica::rt {

/// One requested sample.
struct BatchText {
  std::shared_ptr<const BatchRequest> request;
  int64_t sample; ///< which of the request's texts, from 0
  /// Of all that decides the text, as its result has it: results are kept only where it is theirs.
  std::string digest;
};

class BatchResults {
public:
  /// Opens `path` (none: stdout), which may not be there yet. As long as it is open, no other
  /// process can open it so.
  static Result<std::unique_ptr<BatchResults>> open(const std::optional<std::string> &path);
  ~BatchResults();
  BatchResults(const BatchResults &) = delete;
  BatchResults &operator=(const BatchResults &) = delete;

  /// Whether the file holds the result of `text`, which comes after those that were asked for
  /// before. Asked for all texts in their order, until the answer is no. Errors: it holds something
  /// else.
  Result<bool> holds(const BatchText &text);
  /// All texts have been asked for: makes the file where it is missing, and cuts off a last line
  /// without its end, which an interruption has left. Errors: results of more texts.
  Status begin();

  /// How many texts are done.
  size_t done() const { return next; }
  /// Takes the line of the text with that index, without its end; it is written when those before
  /// it are.
  Status add(size_t index, std::string line);

private:
  BatchResults(int fd, std::string path) : fd(fd), path(std::move(path)) {}
  Status make();
  /// The next line of the file without its end; empty: there is none that is whole.
  Result<std::string_view> nextLine();
  Error refused(const std::string &why) const;
  Error failed() const;
  Error busy() const;

  int fd;                           ///< negative: the file is not there yet
  std::string path;                 ///< empty: stdout
  std::unique_ptr<TextLines> lines; ///< null: nothing is there
  uint64_t whole = 0;               ///< bytes of the lines that are whole
  bool cut = false;                 ///< a line without its end follows them
  size_t next = 0;
  std::map<size_t, std::string> waiting;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H
