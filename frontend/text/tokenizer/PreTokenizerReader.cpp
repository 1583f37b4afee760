#include "frontend/text/tokenizer/PreTokenizerReader.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"
#include "frontend/text/tokenizer/RegexTranslation.h"
#include "frontend/text/tokenizer/SplitPatterns.h"
#include "frontend/text/tokenizer/UnicodeTables.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringSwitch.h"

namespace mica {

using namespace rt::tokenizer;
using Step = TokenizerTable::PreTokenizerStep;

namespace {

std::string builtIn(llvm::StringRef pattern) { return llvm::cantFail(translateRegex(pattern)); }

SplitBehavior readBehavior(const JsonNode &node) {
  std::string name = node.string();
  auto behavior = llvm::StringSwitch<std::optional<SplitBehavior>>(name)
                      .Case("Removed", SplitBehavior::Removed)
                      .Case("Isolated", SplitBehavior::Isolated)
                      .Case("MergedWithPrevious", SplitBehavior::MergedWithPrevious)
                      .Case("MergedWithNext", SplitBehavior::MergedWithNext)
                      .Case("Contiguous", SplitBehavior::Contiguous)
                      .Default(std::nullopt);
  if (!behavior)
    node.refuse("the split behavior " + inQuotes(name) + " is not known");
  return behavior.value_or(SplitBehavior::Isolated);
}

Step split(std::string pattern, SplitBehavior behavior, bool invert = false) {
  Step step{PreTokenizerKind::Split};
  step.text = std::move(pattern);
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

void readSplit(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "pattern", "behavior", "invert"});
  JsonNode pattern = node["pattern"];
  std::string text = pattern.isObject() && pattern["Regex"].absent()
                         ? escapeRegex(pattern["String"].string())
                         : readRegex(pattern.isObject() ? pattern["Regex"] : pattern);
  if (text.size() > maxPatternBytes)
    pattern.refuse("pattern too long");
  table.preTokenizer.push_back(
      split(std::move(text), readBehavior(node["behavior"]), node["invert"].boolean(false)));
}

void readByteLevel(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (node["add_prefix_space"].boolean(true))
    table.preTokenizer.push_back({PreTokenizerKind::PrefixSpace});
  if (node["use_regex"].boolean(true))
    table.preTokenizer.push_back(isolate(gpt2Pattern()));
  table.flags |= ModelFlags::byteLevel;
}

void readMetaspace(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Step step{PreTokenizerKind::Metaspace};
  step.text = node["replacement"].string("\u2581");
  step.split = node["split"].boolean(true);
  std::string scheme =
      node["prepend_scheme"].string(node["add_prefix_space"].boolean(true) ? "always" : "never");
  auto known = llvm::StringSwitch<std::optional<PrependScheme>>(scheme)
                   .Case("never", PrependScheme::Never)
                   .Case("first", PrependScheme::First)
                   .Case("always", PrependScheme::Always)
                   .Default(std::nullopt);
  if (!known)
    node["prepend_scheme"].refuse("the scheme " + inQuotes(scheme) + " is not known");
  if (step.text.empty() || rt::tokenizer::charLength(step.text[0]) != step.text.size())
    node["replacement"].refuse("a replacement that is not one character");
  step.scheme = known.value_or(PrependScheme::Never);
  table.preTokenizer.push_back(std::move(step));
}

/// Whether a pattern has the same meaning for text and for the spelling of its bytes, in which
/// characters outside ASCII are spelled differently.
bool isOfDigits(llvm::StringRef pattern) {
  if (pattern.find_first_not_of("[]0123456789-{},+*?()|") != llvm::StringRef::npos)
    return false;
  auto compiled = Regex::compile(pattern.str());
  return compiled && compiled->minLength() > 0;
}

/// Steps after ByteLevel see the spelling of bytes: among digits, those of ASCII, and bytes
/// spelled with letters that count as numbers (checkDigitsOfBytes).
void readAfterBytes(llvm::StringRef type, const JsonNode &node, TokenizerTable &table) {
  if (type == "Digits") {
    node.allowKeys({"type", "individual_digits"});
    bool each = node["individual_digits"].boolean(false);
    table.preTokenizer.push_back(
        split("[0-9]", each ? SplitBehavior::Isolated : SplitBehavior::Contiguous));
    table.splitsDigitsOfBytes = true;
    return;
  }
  if (type == "Split" && node["pattern"].isObject() &&
      isOfDigits(node["pattern"]["Regex"].string("")))
    return readSplit(node, table);
  node.refuseUnsupported("the pre-tokenizer " + inQuotes(type) + " after ByteLevel");
}

/// Whether the character that represents the byte counts as a number, such as U+00B2.
bool isSpelledAsNumber(char byte) {
  return llvm::StringRef("\xB2\xB3\xB9\xBC\xBD\xBE").contains(byte);
}

} // namespace

/// If no piece joins such a byte to another, as in vocabularies trained with such a pre-tokenizer,
/// splitting these bytes off as well makes no difference.
void checkDigitsOfBytes(const JsonNode &node, const TokenizerTable &table) {
  for (const TokenizerTable::Piece &piece : table.pieces)
    for (size_t i = 1; i < piece.bytes.size(); ++i)
      if (isSpelledAsNumber(piece.bytes[i - 1]) || isSpelledAsNumber(piece.bytes[i]))
        return node.refuseUnsupported(
            "Digits after ByteLevel with pieces that join bytes spelled as numbers");
}

std::string readRegex(const JsonNode &node) {
  auto refuse = [&](const llvm::Twine &why) {
    node.refuse("a regular expression that cannot be used: " + why, "correct the expression");
    return std::string();
  };
  llvm::Expected<std::string> translated = translateRegex(node.string());
  if (!translated)
    return refuse(llvm::toString(translated.takeError()));
  if (translated->size() > maxPatternBytes)
    return refuse("it is longer than " + llvm::Twine(maxPatternBytes) + " bytes");
  auto compiled = Regex::compile(*translated);
  return compiled ? std::move(*translated) : refuse(compiled.error().message);
}

std::string gpt2Pattern() { return builtIn(split_patterns::gpt2[0]); }

std::string qwen2Pattern() { return builtIn(split_patterns::qwen2[0]); }

Step isolate(std::string pattern) { return split(std::move(pattern), SplitBehavior::Isolated); }

void readPreTokenizer(const JsonNode &node, TokenizerTable &table) {
  if (node.absent())
    return;
  std::string type = node["type"].string();
  if (table.flags & ModelFlags::byteLevel)
    return readAfterBytes(type, node, table);
  if (type == "Sequence") {
    node.allowKeys({"type", "pretokenizers"});
    JsonNode steps = node["pretokenizers"];
    for (size_t i = 0; i < steps.array().size(); ++i)
      readPreTokenizer(steps.at(i), table);
  } else if (type == "ByteLevel") {
    readByteLevel(node, table);
  } else if (type == "Split") {
    readSplit(node, table);
  } else if (type == "Digits") {
    node.allowKeys({"type", "individual_digits"});
    bool each = node["individual_digits"].boolean(false);
    table.preTokenizer.push_back(
        split(builtIn("\\p{N}"), each ? SplitBehavior::Isolated : SplitBehavior::Contiguous));
  } else if (type == "Metaspace") {
    readMetaspace(node, table);
  } else if (type == "Whitespace") {
    node.allowKeys({"type"});
    table.preTokenizer.push_back(
        split(builtIn(R"(\w+|[^\w\s]+)"), SplitBehavior::Removed, /*invert=*/true));
  } else if (type == "WhitespaceSplit") {
    node.allowKeys({"type"});
    table.preTokenizer.push_back(split(builtIn(R"(\s)"), SplitBehavior::Removed));
  } else if (type == "Punctuation") {
    node.allowKeys({"type", "behavior"});
    JsonNode behavior = node["behavior"];
    table.preTokenizer.push_back(split(R"([!-/:-@\[-`{-~\p{P}])", behavior.absent()
                                                                      ? SplitBehavior::Isolated
                                                                      : readBehavior(behavior)));
  } else {
    node.refuseType(type, "pre-tokenizer");
  }
}

} // namespace mica
