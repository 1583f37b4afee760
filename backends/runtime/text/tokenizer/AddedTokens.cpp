#include "backends/runtime/text/tokenizer/AddedTokens.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>

namespace mica::rt::tokenizer {
namespace {

/// Tokens with one of these flags are not matched if one of their bytes is untrusted.
constexpr uint8_t kGuarded = AddedTokenFlags::special | AddedTokenFlags::reserved;

/// The start of the character that ends at `at` > 0.
size_t characterBefore(std::string_view text, size_t at) {
  do
    --at;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

std::string_view characterAt(std::string_view text, size_t at) {
  return text.substr(at, charLength(text[at]));
}

} // namespace

Result<AddedTokens> AddedTokens::create(const Table &table, const Normalizer &normalizer) {
  AddedTokens out;
  out.tokens = table.addedTokens;
  using Entries = std::vector<std::pair<std::string_view, int32_t>>;
  Entries entries[2], plain[2], guardeds[2];
  uint8_t flags = 0;
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    const AddedToken &token = out.tokens[i];
    flags |= token.flags;
    bool normalized = token.flags & AddedTokenFlags::normalized;
    std::string_view content = token.content;
    if (normalized && !(token.flags & AddedTokenFlags::piece)) {
      Result<std::string> text = normalizer.apply(content);
      if (!text)
        return text.error();
      content = out.normalizedContents.emplace_back(*std::move(text));
    }
    bool guarded = token.flags & kGuarded;
    for (Entries *list : {&entries[normalized], &(guarded ? guardeds : plain)[normalized]})
      list->emplace_back(content, static_cast<int32_t>(i));
  }
  for (int i = 0; i < 2; ++i) {
    out.searches[i] = PrefixSearch(std::move(entries[i]));
    out.plain[i] = PrefixSearch(std::move(plain[i]));
    out.guarded[i] = PrefixSearch(std::move(guardeds[i]));
  }
  auto compile = [](std::optional<Regex> &into, std::string_view pattern) -> Status {
    Result<Regex> regex = Regex::compile(pattern);
    if (!regex)
      return regex.error();
    into = std::move(*regex);
    return {};
  };
  Status status;
  // The regex crate's \w and \s.
  if (flags & AddedTokenFlags::singleWord)
    status = compile(out.wordCharacter, R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])");
  if (status && (flags & (AddedTokenFlags::stripLeft | AddedTokenFlags::stripRight)))
    status = compile(out.whiteSpace, R"([\t-\r\x{85}\p{Z}])");
  if (!status)
    return status.error();
  return out;
}

bool AddedTokens::is(const std::optional<Regex> &kind, std::string_view character) {
  Regex::Match match;
  return kind && Regex::Searcher(*kind).find(character, 0, match);
}

bool AddedTokens::wordBefore(std::string_view text, size_t at) const {
  return at > 0 && is(wordCharacter, characterAt(text, characterBefore(text, at)));
}

/// Applies the token's flags to its occurrence [begin, end); `from` is where the last part ended.
bool AddedTokens::accept(std::string_view text, const AddedToken &token, size_t from, size_t &begin,
                         size_t &end) const {
  if (token.flags & AddedTokenFlags::singleWord) {
    bool wordAfter = end < text.size() && is(wordCharacter, characterAt(text, end));
    if (wordAfter || wordBefore(text, begin))
      return false;
  }
  if (token.flags & AddedTokenFlags::stripLeft) {
    while (begin > from) {
      size_t previous = characterBefore(text, begin);
      if (previous < from || !is(whiteSpace, characterAt(text, previous)))
        break;
      begin = previous;
    }
    begin = std::max(begin, from);
  }
  if (token.flags & AddedTokenFlags::stripRight)
    while (end < text.size() && is(whiteSpace, characterAt(text, end)))
      end += charLength(text[end]);
  return true;
}

/// The longest token at `at`; guarded tokens must end before the next untrusted byte.
PrefixSearch::Match AddedTokens::find(std::string_view text, size_t at, bool normalized,
                                      const ByteRanges &untrusted) const {
  size_t boundary = untrusted.next(at);
  PrefixSearch::Match match = searches[normalized].longest(text.substr(at));
  if (match.length <= boundary - at || !(tokens[match.value].flags & kGuarded))
    return match;
  PrefixSearch::Match trusted = guarded[normalized].longest(text.substr(at, boundary - at));
  match = plain[normalized].longest(text.substr(at));
  return match.length > trusted.length ? match : trusted;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  const ByteRanges &untrusted) const {
  const PrefixSearch &search = searches[normalized];
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; !search.empty() && at < text.size();) {
    if (!search.mayStart(text[at])) {
      ++at;
      continue;
    }
    PrefixSearch::Match match = find(text, at, normalized, untrusted);
    if (match.length == 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + match.length;
    at = end; // a rejected occurrence is passed over whole
    const AddedToken &token = tokens[match.value];
    if (!accept(text, token, done, begin, end))
      continue;
    if (done < begin)
      parts.push_back({done, begin, -1});
    // Stripping on the left must not include what the previous token stripped on the right.
    if (begin < end)
      parts.push_back({begin, end, token.id});
    // Text stripped on the right is searched as well: the next token may begin in it.
    done = end;
  }
  if (done < text.size())
    parts.push_back({done, text.size(), -1});
  return parts;
}

} // namespace mica::rt::tokenizer
