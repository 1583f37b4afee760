#include "backends/runtime/text/base/Regex.h"

#include <algorithm>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace mica::rt::tokenizer {

namespace {
/// A compiled pattern of PCRE2.
struct Compiled {
  pcre2_code *code = nullptr;
  bool jit = false;
  Compiled() = default;
  Compiled(const Compiled &) = delete;
  Compiled &operator=(const Compiled &) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

/// The number of bytes that a search first reads; PCRE2 reports if it needs more. Words are
/// shorter, so even backtracking within this window is fast.
constexpr size_t window = 256;
/// The number of bytes that wider searches may read: in total, and per byte of the text.
constexpr size_t wideWork = size_t(1) << 26, wideWorkPerByte = 64;
/// Match limits of PCRE2 for a search, and for its repetition when the first limit is exceeded; the
/// repetition is counted as this number of bytes.
constexpr uint32_t defaultSteps = 4096, maxSteps = 20'000'000;
constexpr size_t workOfMaxSteps = size_t(1) << 22;

/// The first character boundary of `text` at or after `at`.
size_t charStart(std::string_view text, size_t at) {
  while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80)
    ++at;
  return std::min(at, text.size());
}
} // namespace

struct Regex::Code {
  Compiled anywhere, anchored;
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

/// The error message of PCRE2 for `status`.
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
  for (auto [compiled, more] :
       {std::pair(&code->anywhere, 0u), std::pair(&code->anchored, uint32_t(PCRE2_ANCHORED))}) {
    compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   options | more, &status, &offset, context.get());
    if (!compiled->code)
      return Error{"PCRE2 rejects the pattern at byte " + std::to_string(offset) + ": " +
                   messageOf(status)};
    compiled->jit =
        pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
  }
  uint32_t minBytes = 0;
  // Text before \K is read, but not part of the match.
  if (pattern.find("\\K") == pattern.npos)
    pcre2_pattern_info(code->anywhere.code, PCRE2_INFO_MINLENGTH, &minBytes);
  return Regex(std::move(code), minBytes);
}

Regex::Searcher::Searcher(const Regex &regex)
    : regex(&regex), scratch(new Scratch), allowance(wideWork) {
  scratch->data = pcre2_match_data_create_from_pattern(regex.code->anywhere.code, nullptr);
  scratch->limits = pcre2_match_context_create(nullptr);
  pcre2_set_heap_limit(scratch->limits, 64 * 1024); // KiB
}

Regex::Searcher::Outcome Regex::Searcher::fail(const std::string &why) {
  if (failed)
    failed = Error{"a pattern of the tokenizer takes too long" + why};
  return Outcome::Failed;
}

bool Regex::Searcher::spend(size_t work) {
  bool enough = work <= allowance;
  allowance -= enough ? work : allowance;
  return enough;
}

Regex::Searcher::Outcome Regex::Searcher::run(std::string_view text, size_t end, size_t from,
                                              bool anchored, Match &match, size_t &start) {
  const Compiled &compiled = anchored ? regex->code->anchored : regex->code->anywhere;
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data() ? text.data() : "");
  uint32_t partial = end < text.size() ? PCRE2_PARTIAL_HARD : 0;
  int found = PCRE2_ERROR_MATCHLIMIT;
  for (uint32_t steps : {defaultSteps, maxSteps}) {
    if (found != PCRE2_ERROR_MATCHLIMIT)
      break;
    if (steps == maxSteps && !spend(workOfMaxSteps))
      return fail("");
    pcre2_set_match_limit(scratch->limits, steps);
    found = PCRE2_ERROR_JIT_BADOPTION;
    if (compiled.jit)
      found = pcre2_jit_match(compiled.code, subject, end, from, partial, scratch->data,
                              scratch->limits);
    // The interpreter is the fallback without executable memory, or if the machine stack was too
    // small.
    if (found == PCRE2_ERROR_JIT_BADOPTION || found == PCRE2_ERROR_JIT_STACKLIMIT)
      found =
          pcre2_match(compiled.code, subject, end, from,
                      PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT | partial, scratch->data, scratch->limits);
  }
  if (found == PCRE2_ERROR_NOMATCH)
    return Outcome::NoMatch;
  if (found < 0 && found != PCRE2_ERROR_PARTIAL)
    return fail(" (PCRE2: " + messageOf(found) + ")");
  const size_t *bounds = pcre2_get_ovector_pointer(scratch->data);
  match = {bounds[0], bounds[1]};
  start = found == PCRE2_ERROR_PARTIAL ? bounds[0] : pcre2_get_startchar(scratch->data);
  bool decided = found >= 0 && (partial == 0 || std::max(match.begin, match.end) < end);
  return decided ? Outcome::Match : Outcome::Undecided;
}

Regex::Searcher::Outcome Regex::Searcher::decide(std::string_view text, size_t start,
                                                 Match &match) {
  for (size_t width = 2 * window;; width *= 2) {
    size_t end = charStart(text, start + width), place = 0;
    if (!spend(end - start))
      return fail("");
    Outcome outcome = run(text, end, start, /*anchored=*/true, match, place);
    if (outcome != Outcome::Undecided)
      return outcome;
  }
}

bool Regex::Searcher::find(std::string_view text, size_t from, Match &match) {
  if (from == 0)
    allowance += wideWorkPerByte * text.size();
  for (size_t at = from; at <= text.size();) {
    size_t end = charStart(text, at + window), start = at;
    Outcome outcome = run(text, end, at, /*anchored=*/false, match, start);
    if (outcome == Outcome::Undecided)
      outcome = decide(text, start, match);
    else if (outcome == Outcome::NoMatch)
      start = end;
    if (outcome == Outcome::Failed && failedAt.data() == nullptr)
      failedAt = text.substr(from);
    if (outcome == Outcome::Failed)
      return false;
    if (outcome == Outcome::Match) // \K and lookbehind tricks match nothing
      return match.begin <= match.end && match.begin >= from;
    // Continue in the next window, or at the next character after a decided position.
    if (start >= text.size())
      return false;
    at = start == end ? end : charStart(text, start + 1);
  }
  return false;
}

} // namespace mica::rt::tokenizer
