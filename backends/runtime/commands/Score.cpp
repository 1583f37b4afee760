#include "backends/runtime/commands/Score.h"
#include "backends/runtime/engine/Session.h"
#include "backends/runtime/profile/Probes.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <unistd.h>

namespace mica::rt {

namespace {
/// Reads lines from stdin.
class LineReader {
public:
  /// The next line without its newline; nothing at the end of the input.
  Result<std::optional<std::string>> next() {
    for (;;) {
      size_t end = buffer.find('\n', searched);
      if (end != buffer.npos) {
        std::string line = buffer.substr(0, end);
        buffer.erase(0, end + 1);
        searched = 0;
        return std::optional(std::move(line));
      }
      searched = buffer.size();
      Result<size_t> got = fill();
      if (!got)
        return got.error();
      if (*got > 0)
        continue;
      if (buffer.empty())
        return std::optional<std::string>();
      return std::optional(std::exchange(buffer, std::string()));
    }
  }

private:
  Result<size_t> fill() {
    char piece[1 << 16];
    ssize_t got;
    do
      got = read(STDIN_FILENO, piece, sizeof piece);
    while (got < 0 && errno == EINTR);
    if (got < 0)
      return Error{std::string("cannot read the standard input: ") + std::strerror(errno)};
    buffer.append(piece, static_cast<size_t>(got));
    return static_cast<size_t>(got);
  }

  std::string buffer;
  size_t searched = 0;
};

/// Answers requests on one sequence.
class Scorer {
public:
  Scorer(Session &session, RowRole role, ProbeListener *probes, int out)
      : session(session), role(role), probes(probes), out(out) {}

  Status answer(const ScoreRequest &request) {
    if (request.length > session.length(0))
      return Error{"cannot go back to " + std::to_string(request.length) + " positions of " +
                   std::to_string(session.length(0)) + "; send the ids before them again"};
    ids.resize(static_cast<size_t>(request.length));
    ids.insert(ids.end(), request.ids.begin(), request.ids.end());
    auto end = static_cast<int64_t>(ids.size());
    // If the session no longer stores what the next row reads, earlier ids are recomputed.
    int64_t kept = session.rewind(0, request.length);
    session.setTotalLength(0, std::max(end, request.total));
    for (int64_t i = kept; i < end; ++i) {
      bool wanted = i >= request.length + request.first;
      if (Status pushed = session.add(0, ids[static_cast<size_t>(i)], role, wanted); !pushed)
        return pushed;
      if (session.isFull() || i + 1 == end)
        if (Status done = run(); !done)
          return done;
    }
    return {};
  }

private:
  Status run() {
    if (probes)
      probes->beginCall();
    Result<std::span<const float>> logits = session.decode();
    if (!logits)
      return logits.error();
    return writeTo(out, {reinterpret_cast<const char *>(logits->data()), logits->size_bytes()});
  }

  Session &session;
  Tokens ids; ///< of all positions
  RowRole role;
  ProbeListener *probes; ///< or null
  int out;
};

std::optional<int32_t> parseNumber(std::string_view text) {
  int32_t number = 0;
  auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || stop != text.data() + text.size() || number < 0)
    return std::nullopt;
  return number;
}
} // namespace

Result<ScoreRequest> parseScoreRequest(std::string_view line) {
  ScoreRequest request;
  for (size_t word = 0;; ++word) {
    size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) {
      if (word < 3)
        return Error{"a line of the standard input has fewer than three words; write "
                     "LENGTH[/TOTAL] FIRST ID ID ..."};
      return request;
    }
    size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    std::string_view text = line.substr(begin, end - begin);
    size_t slash = word == 0 ? std::min(text.find('/'), text.size()) : text.size();
    std::optional<int32_t> number = parseNumber(text.substr(0, slash)), total = 0;
    if (slash < text.size())
      total = parseNumber(text.substr(slash + 1));
    if (!number || !total)
      return Error{"'" + std::string(text.substr(0, 40)) +
                   "' is not a valid number; write LENGTH[/TOTAL] FIRST ID ID ..."};
    line.remove_prefix(end);
    if (word == 0) {
      request.length = *number;
      request.total = *total;
    } else if (word == 1) {
      request.first = *number;
    } else {
      request.ids.push_back(*number);
    }
  }
}

Status scoreCommand(const Model &model, const ScoreArguments &arguments) {
  // The results are of no use if the calling tool has exited.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // Other output, such as a log of oneDNN, must not be mixed with the rows.
  int out = dup(STDOUT_FILENO);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return Error{std::string("cannot write to the standard output: ") + std::strerror(errno)};
  Result<uint64_t> checkpoints =
      checkpointBudget(model.manifest(), arguments.checkpointBytes, model.memoryBesidesWeights());
  if (!checkpoints)
    return checkpoints.error();
  Result<std::unique_ptr<Session>> session = Session::create(
      model, 1, prefillChunkSize(arguments.prefillChunk, model.manifest()), *checkpoints);
  if (!session)
    return session.error();
  std::unique_ptr<ProbeListener> probes;
  if (arguments.probes || arguments.columnSums) {
    auto created = arguments.probes ? ProbeFile::create(*arguments.probes)
                                    : ColumnSums::create(*arguments.columnSums);
    if (!created)
      return created.error();
    probes = *std::move(created);
    probes->start(model.runtime());
  }
  Scorer scorer(**session, arguments.asDecode ? RowRole::Decode : RowRole::Prompt, probes.get(),
                out);
  LineReader lines;
  for (;;) {
    Result<std::optional<std::string>> line = lines.next();
    if (!line)
      return line.error();
    if (!*line)
      return probes ? probes->commit() : Status();
    Result<ScoreRequest> request = parseScoreRequest(**line);
    if (!request)
      return request.error();
    if (Status done = scorer.answer(*request); !done)
      return done;
  }
}

} // namespace mica::rt
