// The results of `--batch`: one line of JSON for each text, in the order of the requests, on stdout
// or appended to a file that may hold the first of them already.
#pragma once

#include "backends/cpu/runtime/BatchRequests.h"

#include <map>

namespace mica::rt {

/// One text that a request asks for.
struct BatchText {
  const BatchRequest *request;
  int64_t sample; ///< which of the request's texts, from 0
  /// Of all that decides the text, as its result has it: results are kept only where it is theirs.
  std::string digest;
};

class BatchResults {
public:
  /// Opens `path` (none: stdout), in which the first lines have to be results of the first of
  /// `texts`; a last line without its end, which an interruption has left, is cut off.
  static Result<std::unique_ptr<BatchResults>> open(const std::optional<std::string> &path,
                                                    const std::vector<BatchText> &texts);
  ~BatchResults();
  BatchResults(const BatchResults &) = delete;
  BatchResults &operator=(const BatchResults &) = delete;

  /// How many texts are done.
  size_t done() const { return next; }
  /// Takes the line of the text with that index, without its end; it is written when those before
  /// it are.
  Status add(size_t index, std::string line);

private:
  BatchResults(int fd, std::string path) : fd(fd), path(std::move(path)) {}
  Status resume(const std::vector<BatchText> &texts);
  Error failed() const;

  int fd;
  std::string path; ///< empty: stdout
  size_t next = 0;
  std::map<size_t, std::string> waiting;
};

} // namespace mica::rt
