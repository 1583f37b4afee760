// The results of `--batch`: a line of JSON for each text, in the order of the requests, on stdout
// or appended to a file that may already contain the first results.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H

#include "backends/runtime/commands/BatchRequests.h"
#include "backends/runtime/support/TextFile.h"

#include <map>

namespace mica::rt {

/// One requested sample.
struct BatchText {
  std::shared_ptr<const BatchRequest> request;
  int64_t sample; ///< index among the request's texts, from 0
  /// A hash of everything that determines the text. An existing result is kept only if its digest
  /// is equal.
  std::string digest;
};

class BatchResults {
public:
  /// Opens `path` (none: stdout), which may not exist yet. No other process can open it this way
  /// until it is closed.
  static Result<std::unique_ptr<BatchResults>> open(const std::optional<std::string> &path);
  ~BatchResults();
  BatchResults(const BatchResults &) = delete;
  BatchResults &operator=(const BatchResults &) = delete;

  /// Whether the file contains the result of `text`. Call it for all texts in order, until it
  /// returns false. Errors: the file contains something else.
  Result<bool> holds(const BatchText &text);
  /// Called after `holds`: creates the file if it does not exist, and removes an incomplete last
  /// line, which an interrupted run leaves. Errors: the file contains results of more texts.
  Status begin();

  /// The number of texts that are done.
  size_t done() const { return next; }
  /// Takes the result of text `index` as a line without newline; it is written once all earlier
  /// texts have been.
  Status add(size_t index, std::string line);

private:
  BatchResults(int fd, std::string path) : fd(fd), path(std::move(path)) {}
  Status make();
  /// The next line of the file without its newline; empty if there is no complete one.
  Result<std::string_view> nextLine();
  Error refused(const std::string &why) const;
  Error failed() const;
  Error busy() const;

  int fd;                           ///< negative: the file does not exist yet
  std::string path;                 ///< empty: stdout
  std::unique_ptr<TextLines> lines; ///< null: the file is empty or does not exist
  uint64_t whole = 0;               ///< bytes of complete lines
  bool cut = false;                 ///< an incomplete line follows them
  size_t next = 0;
  std::map<size_t, std::string> waiting;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BATCHRESULTS_H
