// A compiled pattern of the pre-tokenizer (PCRE2, just-in-time compiled where the system allows
// it).
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

  /// The fewest characters that a match takes from the text, or fewer.
  size_t minLength() const { return least; }

  /// Finds matches in one text. One scratch area per searcher: threads use one each.
  class Searcher {
  public:
    explicit Searcher(const Regex &regex);
    /// The first match in well-formed `text` at or after `from`; false: none, or `failure` says why
    /// that is not known. What all searches of a searcher may cost grows with its texts, which are
    /// searched from their beginnings on: a pattern that looks at the whole rest of a long text for
    /// each of its characters fails.
    bool find(std::string_view text, size_t from, Match &match);
    /// Success, unless a search has exceeded a limit of steps or memory.
    const Status &failure() const { return failed; }
    /// The text from where that search began; only where it failed, while that text is there.
    std::string_view failedText() const { return failedAt; }

  private:
    struct Scratch;
    struct Free {
      void operator()(Scratch *scratch) const;
    };
    enum class Outcome { Match, NoMatch, Undecided, Failed };
    /// Matches in [0, end) of `text`, at `from` only or from there on. Undecided: what follows
    /// `end` could change what happens at `start`.
    Outcome run(std::string_view text, size_t end, size_t from, bool anchored, Match &match,
                size_t &start);
    /// Decides what happens at `start` alone, with as much text after it as that takes.
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
  Regex(std::shared_ptr<const Code> code, size_t least) : code(std::move(code)), least(least) {}
  std::shared_ptr<const Code> code;
  size_t least;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_BASE_REGEX_H
