#include "backends/cpu/runtime/tokenizer/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace mica::rt::tokenizer {

struct Regex::Code {
  pcre2_code *code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

struct Regex::Searcher::Scratch {
  pcre2_match_data *data = nullptr;
  pcre2_match_context *limits = nullptr;
};

void Regex::Searcher::Free::operator()(Scratch *scratch) const {
  pcre2_match_data_free(scratch->data);
  pcre2_match_context_free(scratch->limits);
  delete scratch;
}

/// What PCRE2 calls `status`.
static std::string messageOf(int status) {
  char text[256] = "";
  pcre2_get_error_message(status, reinterpret_cast<PCRE2_UCHAR *>(text), sizeof(text));
  return text;
}

Result<Regex> Regex::compile(std::string_view pattern) {
  auto code = std::make_shared<Code>();
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context *)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context)
    return Error{"out of memory for a pattern"};
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 64);
  int status = 0;
  size_t offset = 0;
  // `^` and `$` match at every line, as in the engine that published patterns are written for.
  constexpr uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options,
                             &status, &offset, context.get());
  if (!code->code)
    return Error{"a pattern that PCRE2 refuses at byte " + std::to_string(offset) + ": " +
                 messageOf(status)};
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  uint32_t least = 0;
  // What \K leaves out is looked at, not taken.
  if (pattern.find("\\K") == pattern.npos)
    pcre2_pattern_info(code->code, PCRE2_INFO_MINLENGTH, &least);
  return Regex(std::move(code), least);
}

Regex::Searcher::Searcher(const Regex &regex) : regex(&regex), scratch(new Scratch) {
  scratch->data = pcre2_match_data_create_from_pattern(regex.code->code, nullptr);
  scratch->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(scratch->limits, 20'000'000);
  pcre2_set_heap_limit(scratch->limits, 64 * 1024); // KiB
}

bool Regex::Searcher::find(std::string_view text, size_t from, Match &match) {
  if (from > text.size())
    return false;
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data() ? text.data() : "");
  int found = PCRE2_ERROR_JIT_BADOPTION;
  if (regex->code->jit)
    found = pcre2_jit_match(regex->code->code, subject, text.size(), from, 0, scratch->data,
                            scratch->limits);
  // The interpreter stands in without executable memory, and where the machine stack did not
  // suffice.
  if (found == PCRE2_ERROR_JIT_BADOPTION || found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match(regex->code->code, subject, text.size(), from,
                        PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch->data, scratch->limits);
  if (found < 0) {
    if (found != PCRE2_ERROR_NOMATCH && failed) {
      failed = Error{"a pattern of the tokenizer takes too long (PCRE2: " + messageOf(found) + ")"};
      failedAt = text.substr(from);
    }
    return false;
  }
  const size_t *bounds = pcre2_get_ovector_pointer(scratch->data);
  match = {bounds[0], bounds[1]};
  return match.begin <= match.end && match.begin >= from; // \K and lookbehind tricks match nothing
}

} // namespace mica::rt::tokenizer
