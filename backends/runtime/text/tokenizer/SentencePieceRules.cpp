// The normalizer of sentencepiece: its compiled character map and white space rules. The
// tokenizers package applies the same map by different rules.
#include "backends/runtime/text/tokenizer/SentencePieceRules.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/Table.h"

namespace mica::rt::tokenizer {
namespace {

constexpr std::string_view visibleSpace = "\xE2\x96\x81";

/// The double-array trie of the Darts library: unit i's children are at i ^ offset(i) ^ byte. A
/// unit has the label in bits 0-7 and 31, "has a value" in bit 8, the offset in bits 10-30 (shifted
/// by 8 more where bit 9 is set).
class Darts {
public:
  explicit Darts(std::string_view bytes)
      : units(reinterpret_cast<const std::byte *>(bytes.data()), bytes.size() / 4) {}

  struct Match {
    size_t length = 0; // 0: none
    uint32_t value = 0;
  };
  Match longest(std::string_view text) const { return search(text, /*shortest=*/false); }
  Match shortest(std::string_view text) const { return search(text, /*shortest=*/true); }

private:
  Match search(std::string_view text, bool shortest) const {
    Match match;
    if (units.empty())
      return match;
    size_t at = offset(units[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      at ^= static_cast<uint8_t>(text[i]);
      if (at >= units.size())
        return match;
      uint32_t unit = units[at];
      if ((unit & 0x800000FFu) != static_cast<uint8_t>(text[i]))
        return match;
      at ^= offset(unit);
      if (unit >> 8 & 1) {
        if (at >= units.size())
          return match;
        match = {i + 1, units[at] & 0x7FFFFFFFu};
        if (shortest)
          return match;
      }
    }
    return match;
  }
  static size_t offset(uint32_t unit) { return size_t(unit >> 10) << ((unit & (1u << 9)) >> 6); }
  Array<uint32_t> units;
};

class SentencePieceStage final : public NormalizerStage {
public:
  SentencePieceStage(const NormalizerStep &step, const Table &table)
      : rules(step.rules), darts(step.trie), replacements(step.replacements) {
    std::vector<std::pair<std::string_view, int32_t>> userDefined;
    for (uint32_t id = 0; id < table.pieces(); ++id)
      if (table.pieceFlags[id] & PieceFlags::userDefined)
        userDefined.emplace_back(table.piece(id), static_cast<int32_t>(id));
    kept = PrefixSearch(std::move(userDefined));
  }

  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    RangesCarrier carrier(trace);
    std::string_view rest = text;
    bool removeExtra = rules & SentencePieceRules::removeExtraSpaces;
    while (removeExtra && !rest.empty()) {
      Part part = next(rest);
      if (part.text != " ")
        break;
      rest.remove_prefix(part.consumed);
    }
    if (rest.empty())
      return std::string();
    std::string out;
    out.reserve(rest.size() + rest.size() / 2);
    bool asSuffix = rules & SentencePieceRules::spaceAsSuffix;
    bool dummy = rules & SentencePieceRules::dummyPrefix;
    if (dummy && !asSuffix)
      out += space();
    appendParts(rest, removeExtra, text.size() - rest.size(), carrier, out);
    while (removeExtra && out.ends_with(space()))
      out.resize(out.size() - space().size());
    if (dummy && asSuffix)
      out += space();
    // Character maps are not trusted: their output must be valid text.
    return replacements.empty() || isUtf8(out) ? out : carrier.repaired(out);
  }

private:
  struct Part {
    std::string_view text; // what the first `consumed` bytes become
    size_t consumed;
  };

  std::string_view space() const {
    return rules & SentencePieceRules::escapeSpaces ? visibleSpace : " ";
  }

  Part next(std::string_view text) const {
    if (auto found = kept.longest(text); found.length != 0)
      return {text.substr(0, found.length), found.length};
    auto found = darts.longest(text);
    if (found.length == 0 || found.value >= replacements.size()) {
      size_t length = std::min<size_t>(charLength(text[0]), text.size());
      return {text.substr(0, length), length};
    }
    return {replacements.data() + found.value,
            found.length}; // zero-terminated, as the table's check ensures
  }

  /// `at`: the position of `rest` in the text.
  void appendParts(std::string_view rest, bool removeExtra, size_t at, RangesCarrier &carrier,
                   std::string &out) const {
    bool afterSpace = removeExtra;
    while (!rest.empty()) {
      Part part = next(rest);
      size_t before = out.size(), consumed = part.consumed;
      rest.remove_prefix(consumed);
      while (afterSpace && part.text.starts_with(' '))
        part.text.remove_prefix(1);
      for (char byte : part.text) {
        if (byte == ' ')
          out += space();
        else
          out += byte;
      }
      carrier.changed(at, at + consumed, before, out.size());
      at += consumed;
      if (!part.text.empty())
        afterSpace = part.text.ends_with(' ');
      afterSpace &= removeExtra;
    }
  }

  uint8_t rules;
  Darts darts;
  std::string_view replacements;
  PrefixSearch kept;
};

/// Applies the map like the tokenizers package: a short grapheme is replaced as a whole by the
/// replacement of the shortest entry at its start; without such an entry, and in longer graphemes,
/// characters are mapped individually.
class CharsMapStage final : public NormalizerStage {
public:
  explicit CharsMapStage(const NormalizerStep &step)
      : darts(step.trie), replacements(step.replacements), grapheme(*Regex::compile("\\X")) {}

  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    RangesCarrier carrier(trace);
    std::string out;
    out.reserve(text.size());
    Regex::Searcher searcher(grapheme);
    for (size_t at = 0; at < text.size();) {
      size_t end = graphemeEnd(text, at, searcher), before = out.size();
      appendGrapheme(std::string_view(text).substr(at, end - at), out);
      carrier.changed(at, end, before, out.size());
      at = end;
    }
    if (!searcher.failure()) {
      trace.failedAt = text.size() - searcher.failedText().size();
      return searcher.failure().error();
    }
    return isUtf8(out) ? out : carrier.repaired(out); // maps are not trusted
  }

private:
  static constexpr size_t shortBytes = 6; ///< short graphemes have fewer bytes

  static size_t graphemeEnd(std::string_view text, size_t at, Regex::Searcher &searcher) {
    auto isAscii = [&](size_t i) {
      return i >= text.size() || static_cast<uint8_t>(text[i]) < 0x80;
    };
    if (isAscii(at) && isAscii(at + 1) && !text.substr(at).starts_with("\r\n"))
      return at + 1;
    // The search only sees the text from here on: in a sequence of flags, it looks back to the
    // first one, which would take quadratic time.
    Regex::Match match;
    bool found = searcher.find(text.substr(at), 0, match) && match.begin == 0 && match.end > 0;
    return at + (found ? match.end : charLength(text[at]));
  }

  void appendGrapheme(std::string_view text, std::string &out) const {
    if (text.size() < shortBytes && append(text, out))
      return;
    for (size_t at = 0; at < text.size(); at += charLength(text[at])) {
      std::string_view character = text.substr(at, charLength(text[at]));
      if (!append(character, out))
        out += character;
    }
  }

  /// Appends the replacement of the entry at the start of `text`; false: no entry.
  bool append(std::string_view text, std::string &out) const {
    auto found = darts.shortest(text.substr(0, text.find('\0')));
    if (found.length == 0 || found.value >= replacements.size())
      return false;
    out += replacements.data() + found.value; // zero-terminated, as the table's check ensures
    return true;
  }

  Darts darts;
  std::string_view replacements;
  Regex grapheme;
};

} // namespace

std::unique_ptr<NormalizerStage> makeCharsMap(const NormalizerStep &step) {
  return std::make_unique<CharsMapStage>(step);
}

std::unique_ptr<NormalizerStage> makeSentencePieceRules(const NormalizerStep &step,
                                                        const Table &table) {
  return std::make_unique<SentencePieceStage>(step, table);
}

} // namespace mica::rt::tokenizer
