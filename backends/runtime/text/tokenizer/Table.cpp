#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>
#include <cmath>

namespace mica::rt::tokenizer {
namespace {

/// Reads sequentially; after the first error, all reads return zeros and `failure` describes the
/// error.
class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes(bytes) {}

  void fail(std::string what) {
    if (failure.empty())
      failure = std::move(what);
    position = bytes.size();
  }
  bool failed() const { return !failure.empty(); }
  const std::string &message() const { return failure; }
  bool atEnd() const { return position == bytes.size(); }

  template <typename T> T number(const char *what) {
    T value{};
    if (const std::byte *at = take(sizeof(T), what))
      std::memcpy(&value, at, sizeof(T));
    return value;
  }
  template <typename T> Array<T> list(const char *what, uint32_t max) {
    uint32_t count = number<uint32_t>(what);
    if (count > max)
      fail(std::string("too many ") + what);
    if (failed())
      return {};
    const std::byte *at = take(uint64_t(count) * sizeof(T), what);
    return at ? Array<T>(at, count) : Array<T>();
  }
  std::string_view string(const char *what, uint32_t max) {
    uint32_t length = number<uint32_t>(what);
    if (length > max)
      fail(std::string(what) + " too long");
    if (failed())
      return {};
    const std::byte *at = take(length, what);
    return at ? std::string_view(reinterpret_cast<const char *>(at), length) : std::string_view();
  }
  std::string_view utf8(const char *what, uint32_t max) {
    std::string_view text = string(what, max);
    if (!isUtf8(text))
      fail(std::string("invalid UTF-8 in ") + what);
    return text;
  }
  /// A number from 0 to `last`.
  template <typename T> T choice(const char *what, uint8_t first, uint8_t last) {
    uint8_t value = number<uint8_t>(what);
    if (!failed() && (value < first || value > last)) {
      fail(std::string("unknown ") + what);
      return static_cast<T>(first);
    }
    return static_cast<T>(value);
  }
  uint32_t count(const char *what, uint32_t max) {
    uint32_t value = number<uint32_t>(what);
    if (value > max)
      fail(std::string("too many ") + what);
    return failed() ? 0 : value;
  }

private:
  const std::byte *take(uint64_t size, const char *what) {
    if (size > bytes.size() - position) {
      fail(std::string("truncated at ") + what);
      return nullptr;
    }
    const std::byte *at = bytes.data() + position;
    position += size;
    return at;
  }

  std::span<const std::byte> bytes;
  size_t position = 0;
  std::string failure;
};

void readHeader(Reader &reader, size_t size) {
  if (reader.number<uint64_t>("header") != tableMagic)
    return reader.fail("not a tokenizer table");
  if (reader.number<uint32_t>("header") != tableVersion)
    return reader.fail("a tokenizer table of another version");
  if (reader.number<uint32_t>("header") != size)
    reader.fail("its size differs from what its header says");
}

void checkId(Reader &reader, const Table &table, int64_t id, const char *what) {
  if (id < 0 || id >= table.pieces())
    reader.fail(std::string("an id out of range in ") + what);
}

void readModel(Reader &reader, Table &table) {
  table.kind = reader.choice<ModelKind>("model kind", 1, lastModelKind);
  table.flags = reader.number<uint32_t>("model flags");
  if (table.flags & ~ModelFlags::all)
    reader.fail("unknown model flags");
  table.unknownId = reader.number<int32_t>("unknown id");
  for (int32_t &id : table.byteIds)
    id = reader.number<int32_t>("byte ids");
}

void readPieces(Reader &reader, Table &table) {
  table.pieceEnds = reader.list<uint32_t>("pieces", maxPieces);
  table.pieceBytes = reader.string("pieces' bytes", ~0u);
  table.pieceFlags = reader.list<uint8_t>("pieces' flags", maxPieces);
  bool exact = table.kind == ModelKind::ExactUnigram;
  if (exact)
    table.exactScores = reader.list<double>("scores", maxPieces);
  else
    table.scores = reader.list<float>("scores", maxPieces);
  table.merges = reader.list<Merge>("merges", maxMerges);
  uint32_t previous = 0;
  for (size_t i = 0; i < table.pieceEnds.size(); ++i) {
    uint32_t end = table.pieceEnds[i];
    if (end < previous || end - previous > maxPieceBytes)
      return reader.fail("pieces out of order");
    previous = end;
  }
  if (previous != table.pieceBytes.size() || table.pieceFlags.size() != table.pieces())
    return reader.fail("pieces that disagree with their bytes");
  bool wantsScores = table.kind != ModelKind::MergesByRank && !exact;
  if (table.scores.size() != (wantsScores ? table.pieces() : 0) ||
      table.exactScores.size() != (exact ? table.pieces() : 0))
    return reader.fail("scores that disagree with the pieces");
  for (size_t i = 0; i < table.exactScores.size(); ++i)
    if (!std::isfinite(table.exactScores[i]))
      return reader.fail("a score that is not finite");
  for (size_t i = 0; i < table.scores.size(); ++i)
    if (!std::isfinite(table.scores[i]))
      return reader.fail("a score that is not finite");
  for (size_t i = 0; i < table.pieceFlags.size(); ++i)
    if (table.pieceFlags[i] & ~PieceFlags::all)
      return reader.fail("unknown piece flags");
  for (size_t i = 0; i < table.merges.size(); ++i) {
    Merge merge = table.merges[i];
    checkId(reader, table, merge.left, "the merges");
    checkId(reader, table, merge.right, "the merges");
    checkId(reader, table, merge.merged, "the merges");
  }
  if (table.unknownId != -1)
    checkId(reader, table, table.unknownId, "the model");
  for (int32_t id : table.byteIds)
    if (id != -1)
      checkId(reader, table, id, "the byte ids");
}

/// Checks a character map of sentencepiece.
void readCharsMap(Reader &reader, NormalizerStep &step) {
  step.trie = reader.string("normalizer's trie", maxCharsMapBytes);
  step.replacements = reader.string("normalizer's replacements", maxCharsMapBytes);
  if (step.trie.size() % 4 != 0 || (!step.replacements.empty() && step.replacements.back() != '\0'))
    reader.fail("a broken character map in the normalizer");
}

/// {code point, count, code points...}*: no sequence may exceed the end.
void checkDecompositions(Reader &reader, const Array<uint32_t> &list) {
  for (size_t i = 0; i < list.size();) {
    if (list.size() - i < 2 || list[i + 1] > 32 || list[i + 1] > list.size() - i - 2)
      return reader.fail("a broken decomposition");
    i += 2 + list[i + 1];
  }
}

NormalizerStep readNormalizerStep(Reader &reader) {
  NormalizerStep step{};
  step.kind = reader.choice<NormalizerKind>("normalizer", 1, lastNormalizerKind);
  switch (step.kind) {
  case NormalizerKind::Prepend:
    step.text = reader.utf8("normalizer", maxPatternBytes);
    break;
  case NormalizerKind::Replace:
    step.text = reader.utf8("normalizer", maxPatternBytes);
    step.replacement = reader.utf8("normalizer", maxPatternBytes);
    if (step.text.empty())
      reader.fail("an empty pattern in the normalizer");
    break;
  case NormalizerKind::UnicodeForm:
    step.compose = reader.choice<uint8_t>("normalizer", 0, 1) != 0;
    step.classes = reader.list<uint32_t>("combining classes", 1u << 16);
    step.decompositions = reader.list<uint32_t>("decompositions", 1u << 20);
    step.compositions = reader.list<uint32_t>("compositions", 1u << 16);
    if (step.classes.size() % 2 != 0 || step.compositions.size() % 3 != 0)
      reader.fail("broken Unicode tables");
    checkDecompositions(reader, step.decompositions);
    break;
  case NormalizerKind::SentencePiece:
    step.rules = reader.number<uint8_t>("normalizer");
    readCharsMap(reader, step);
    if (step.rules & ~SentencePieceRules::all)
      reader.fail("a broken sentencepiece normalizer");
    break;
  case NormalizerKind::CharsMap:
    readCharsMap(reader, step);
    break;
  case NormalizerKind::CharacterMap:
    step.characters = reader.list<uint32_t>("character map", 1u << 16);
    checkDecompositions(reader, step.characters);
    break;
  case NormalizerKind::Strip:
    step.left = reader.choice<uint8_t>("normalizer", 0, 1) != 0;
    step.right = reader.choice<uint8_t>("normalizer", 0, 1) != 0;
    break;
  case NormalizerKind::ReplacePattern:
    step.text = reader.utf8("normalizer", maxPatternBytes);
    step.replacement = reader.utf8("normalizer", maxPatternBytes);
    if (Result<Regex> pattern = Regex::compile(step.text); !pattern)
      reader.fail("a pattern in the normalizer that PCRE2 rejects");
    else
      step.minBytes = pattern->minLength();
    break;
  }
  return step;
}

/// Chained replacements can grow a text exponentially; published ones at most triple it, and add
/// three bytes at its start. Growth by Unicode forms and character maps is checked when they run
/// (Normalizer::apply).
void checkGrowth(Reader &reader, const Table &table) {
  // If `from` is empty, each byte is kept and `to` is inserted beside it.
  auto grow = [&](double &growth, size_t from, size_t to) {
    auto added = static_cast<double>(to);
    growth *= from == 0 ? 1 + added : std::max(1.0, added / static_cast<double>(from));
    if (growth > static_cast<double>(kMaxGrowth))
      reader.fail("replacements that let the text grow without bound");
  };
  double growth = 1, decoderGrowth = 1;
  size_t forms = 0, sentencePiece = 0;
  for (const NormalizerStep &step : table.normalizer) {
    if (step.kind == NormalizerKind::Prepend)
      grow(growth, 0, step.text.size());
    if (step.kind == NormalizerKind::Replace)
      grow(growth, step.text.size(), step.replacement.size());
    if (step.kind == NormalizerKind::ReplacePattern)
      grow(growth, step.minBytes, step.replacement.size());
    forms += step.kind == NormalizerKind::UnicodeForm || step.kind == NormalizerKind::CharacterMap;
    sentencePiece +=
        step.kind == NormalizerKind::SentencePiece || step.kind == NormalizerKind::CharsMap;
    size_t run = 0; // the length of one zero-terminated replacement
    for (char byte : step.replacements) {
      run = byte == '\0' ? 0 : run + 1;
      if (run > maxCharsMapReplacement)
        return reader.fail("normalizer replacement too long");
    }
  }
  for (const Replacement &entry : table.replacements)
    grow(decoderGrowth, entry.from.size(), entry.to.size());
  if (forms > 3 || sentencePiece > 1)
    reader.fail("a normalizer that repeats itself");
}

PreTokenizerStep readPreTokenizerStep(Reader &reader) {
  PreTokenizerStep step{};
  step.kind = reader.choice<PreTokenizerKind>("pre-tokenizer", 1, lastPreTokenizerKind);
  if (step.kind == PreTokenizerKind::Split) {
    step.behavior = reader.choice<SplitBehavior>("pre-tokenizer", 0, lastSplitBehavior);
    step.invert = reader.choice<uint8_t>("pre-tokenizer", 0, 1) != 0;
    step.text = reader.utf8("pre-tokenizer", maxPatternBytes);
  } else if (step.kind == PreTokenizerKind::Metaspace) {
    step.scheme = reader.choice<PrependScheme>("pre-tokenizer", 0, lastPrependScheme);
    step.split = reader.choice<uint8_t>("pre-tokenizer", 0, 1) != 0;
    step.text = reader.utf8("pre-tokenizer", maxPatternBytes);
    if (step.text.empty() || charLength(step.text[0]) != step.text.size())
      reader.fail("a Metaspace replacement that is not one character");
  }
  return step;
}

void readAddedTokens(Reader &reader, Table &table) {
  uint32_t count = reader.count("added tokens", maxPieces);
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
    AddedToken token{};
    token.id = reader.number<int32_t>("added tokens");
    token.flags = reader.number<uint8_t>("added tokens");
    token.content = reader.utf8("added tokens", maxPieceBytes);
    checkId(reader, table, token.id, "the added tokens");
    if (token.content.empty() || (token.flags & ~AddedTokenFlags::all))
      reader.fail("a broken added token");
    table.addedTokens.push_back(token);
  }
}

void readPrompt(Reader &reader, Table &table) {
  for (std::vector<int32_t> *ids : {&table.prefixIds, &table.suffixIds}) {
    Array<int32_t> list = reader.list<int32_t>("prompt ids", maxSteps);
    for (size_t i = 0; i < list.size(); ++i) {
      checkId(reader, table, list[i], "the prompt");
      ids->push_back(list[i]);
    }
  }
}

void readDecoder(Reader &reader, Table &table) {
  table.decoderStart = reader.choice<DecoderStart>("decoder", 0, lastDecoderStart);
  table.stripCount = reader.number<uint32_t>("decoder");
  table.stripped = reader.utf8("decoder", maxPatternBytes);
  table.unknownText = reader.utf8("decoder", maxPatternBytes);
  uint32_t count = reader.count("decoder steps", maxSteps);
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
    Replacement entry;
    entry.from = reader.utf8("decoder", maxPatternBytes);
    entry.to = reader.utf8("decoder", maxPatternBytes);
    if (entry.from.empty())
      reader.fail("an empty pattern in the decoder");
    table.replacements.push_back(entry);
  }
  if (table.decoderStart != DecoderStart::Nothing && table.stripped.empty())
    reader.fail("a decoder that strips nothing");
}

} // namespace

std::vector<bool> idsWith(const Table &table, uint8_t flags) {
  std::vector<bool> ids(table.pieces(), false);
  for (const AddedToken &token : table.addedTokens)
    if (token.flags & flags)
      ids[static_cast<size_t>(token.id)] = true;
  return ids;
}

std::vector<bool> specialIds(const Table &table) {
  return idsWith(table, AddedTokenFlags::special | AddedTokenFlags::reserved);
}

Result<Table> openTable(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Table table{};
  readHeader(reader, bytes.size());
  readModel(reader, table);
  readPieces(reader, table);
  uint32_t steps = reader.count("normalizer steps", maxSteps);
  for (uint32_t i = 0; i < steps && !reader.failed(); ++i)
    table.normalizer.push_back(readNormalizerStep(reader));
  steps = reader.count("pre-tokenizer steps", maxSteps);
  for (uint32_t i = 0; i < steps && !reader.failed(); ++i)
    table.preTokenizer.push_back(readPreTokenizerStep(reader));
  readAddedTokens(reader, table);
  readPrompt(reader, table);
  readDecoder(reader, table);
  if (!reader.failed())
    checkGrowth(reader, table);
  if (!reader.failed() && !reader.atEnd())
    reader.fail("bytes after its end");
  if (reader.failed())
    return Error{"the tokenizer table is broken: " + reader.message() +
                 "; compile the model again"};
  return table;
}

} // namespace mica::rt::tokenizer
