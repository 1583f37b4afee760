// A compiled pattern of the pre-tokenizer (PCRE2, just-in-time compiled where the system allows
// it).
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <memory>
#include <string_view>

namespace mica::rt::tokenizer {

class Regex {
public:
  static Result<Regex> compile(std::string_view pattern);

  struct Match {
    size_t begin, end;
  };

  /// Finds matches in one text. One scratch area per searcher: threads use one each.
  class Searcher {
  public:
    explicit Searcher(const Regex &regex);
    /// The first match in well-formed `text` at or after `from`; false: none. A pattern that
    /// exceeds its step limit has none.
    bool find(std::string_view text, size_t from, Match &match);

  private:
    struct Scratch;
    struct Free {
      void operator()(Scratch *scratch) const;
    };
    const Regex *regex;
    std::unique_ptr<Scratch, Free> scratch;
  };

private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code(std::move(code)) {}
  std::shared_ptr<const Code> code;
};

} // namespace mica::rt::tokenizer
