// A compiled pattern of the pre-tokenizer (PCRE2, with just-in-time compilation if the system
// allows it).
#ifndef MICA_BACKENDS_RUNTIME_TEXT_BASE_REGEX_H
#define MICA_BACKENDS_RUNTIME_TEXT_BASE_REGEX_H

#include "backends/runtime/support/Result.h"

#include <memory>
#include <string_view>

namespace mica::rt::tokenizer {

class Regex {
public:
  static Result<Regex> compile(std::string_view pattern);

  struct Match {
    size_t begin, end;
  };

  /// A lower bound of the number of characters of a match.
  size_t minLength() const { return minBytes; }

  /// Finds matches in one text. It has its own scratch memory, so each thread needs its own.
  class Searcher {
  public:
    explicit Searcher(const Regex &regex);
    /// Finds the first match in well-formed `text` at or after `from`. False: no match, or
    /// `failure` says why this could not be determined. The number of steps allowed for all
    /// searches is proportional to the lengths of the texts, so a pattern with quadratic cost
    /// fails on a long text instead of running for hours.
    bool find(std::string_view text, size_t from, Match &match);
    /// An error if a search has exceeded a limit of steps or memory.
    const Status &failure() const { return failed; }
    /// The text from the start of the failed search; valid after a failure, while the text exists.
    std::string_view failedText() const { return failedAt; }

  private:
    struct Scratch;
    struct Free {
      void operator()(Scratch *scratch) const;
    };
    enum class Outcome { Match, NoMatch, Undecided, Failed };
    /// Matches in [0, end) of `text`, only at `from` or from there on. Undecided: text after
    /// `end` could change the result at `start`.
    Outcome run(std::string_view text, size_t end, size_t from, bool anchored, Match &match,
                size_t &start);
    /// Decides whether there is a match at `start`, reading as much of the text as needed.
    Outcome decide(std::string_view text, size_t start, Match &match);
    bool spend(size_t work);
    Outcome fail(const std::string &why);

    const Regex *regex;
    std::unique_ptr<Scratch, Free> scratch;
    size_t allowance; ///< work that is left
    Status failed;
    std::string_view failedAt;
  };

private:
  struct Code;
  Regex(std::shared_ptr<const Code> code, size_t minBytes)
      : code(std::move(code)), minBytes(minBytes) {}
  std::shared_ptr<const Code> code;
  size_t minBytes;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_BASE_REGEX_H
