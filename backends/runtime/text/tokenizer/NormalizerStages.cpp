// Steps of the normalizer that map characters, strip both ends, and replace matches of a pattern.
#include "backends/runtime/text/tokenizer/NormalizerStages.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <unordered_map>

namespace mica::rt::tokenizer {
namespace {

class CharacterMap final : public NormalizerStage {
public:
  explicit CharacterMap(const NormalizerStep &step) : list(step.characters) {
    for (size_t i = 0; i + 1 < list.size(); i += 2 + list[i + 1])
      entries[list[i]] = static_cast<uint32_t>(i);
  }
  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    RangesCarrier carrier(trace);
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size(); at += charLength(text[at])) {
      size_t before = out.size();
      append(std::string_view(text).substr(at, charLength(text[at])), out);
      carrier.changed(at, at + charLength(text[at]), before, out.size());
    }
    return out;
  }

private:
  void append(std::string_view character, std::string &out) const {
    auto found = entries.find(decodeChar(character));
    if (found == entries.end()) {
      out += character;
      return;
    }
    for (uint32_t i = 0; i < list[found->second + 1]; ++i)
      appendChar(out, list[found->second + 2 + i]);
  }

  Array<uint32_t> list;
  std::unordered_map<uint32_t, uint32_t> entries; // index into `list`
};

/// Compiles a pattern that has been validated with the table.
Regex compiled(std::string_view pattern) { return *Regex::compile(pattern); }

/// Unicode's white space.
constexpr std::string_view spaceBefore = "\\A[\\t-\\r\\x{85}\\p{Z}]+",
                           space = "[\\t-\\r\\x{85}\\p{Z}]";

class Strip final : public NormalizerStage {
public:
  explicit Strip(const NormalizerStep &step)
      : left(step.left), right(step.right), before(compiled(spaceBefore)), one(compiled(space)) {}
  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    Regex::Match match{0, 0};
    if (left && Regex::Searcher(before).find(text, 0, match)) {
      RangesCarrier(trace).copied(match.end, text.size(), 0);
      text.erase(0, match.end), trace.moved = true;
    }
    Regex::Searcher searcher(one);
    while (right && !text.empty()) {
      size_t last = text.size() - 1;
      while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80)
        --last;
      if (!searcher.find(std::string_view(text).substr(last), 0, match))
        break;
      text.resize(last);
    }
    RangesCarrier(trace).copied(0, text.size(), 0);
    return text;
  }

private:
  bool left, right;
  Regex before, one;
};

class ReplacePattern final : public NormalizerStage {
public:
  explicit ReplacePattern(const NormalizerStep &step)
      : pattern(compiled(step.text)), replacement(step.replacement) {}
  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    if (text.empty())
      return text; // no replacement in an empty text
    RangesCarrier carrier(trace);
    std::string out;
    size_t done = 0, from = 0;
    bool any = false;
    Regex::Searcher searcher(pattern);
    for (Regex::Match match; from <= text.size() && searcher.find(text, from, match);) {
      // As in the pre-tokenizer: no empty match right after a match.
      if (match.begin == match.end && any && match.end == done) {
        from = done + (done < text.size() ? charLength(text[done]) : 1);
        continue;
      }
      carrier.copied(done, match.begin, out.size());
      out.append(text, done, match.begin - done);
      carrier.changed(match.begin, match.end, out.size(), out.size() + replacement.size());
      out += replacement;
      trace.moved |= match.begin == 0 &&
                     replacedMovesStart(std::string_view(text).substr(0, match.end), replacement);
      done = from = match.end;
      any = true;
    }
    if (!searcher.failure()) {
      trace.failedAt = text.size() - searcher.failedText().size();
      return searcher.failure().error();
    }
    carrier.copied(done, text.size(), out.size());
    return out.append(text, done);
  }

private:
  Regex pattern;
  std::string_view replacement;
};

} // namespace

std::unique_ptr<NormalizerStage> makeCharacterMap(const NormalizerStep &step) {
  return std::make_unique<CharacterMap>(step);
}
std::unique_ptr<NormalizerStage> makeStrip(const NormalizerStep &step) {
  return std::make_unique<Strip>(step);
}
std::unique_ptr<NormalizerStage> makeReplacePattern(const NormalizerStep &step) {
  return std::make_unique<ReplacePattern>(step);
}

} // namespace mica::rt::tokenizer
