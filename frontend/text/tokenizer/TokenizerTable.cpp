#include "frontend/text/tokenizer/TokenizerTable.h"

#include <cstring>
#include <string_view>
#include <type_traits>

namespace mica {

using namespace rt::tokenizer;

namespace {

/// Appends in the order of TableFormat.h. The host is little-endian, as the target is.
class Writer {
public:
  template <typename T> void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    raw(&value, sizeof(T));
  }
  template <typename Enum> void choice(Enum value) { number(static_cast<uint8_t>(value)); }
  void count(size_t value) { number(static_cast<uint32_t>(value)); }
  void string(std::string_view text) {
    count(text.size());
    raw(text.data(), text.size());
  }
  template <typename T> void list(const std::vector<T> &values) {
    count(values.size());
    raw(values.data(), values.size() * sizeof(T));
  }
  std::vector<std::byte> finish(size_t sizeAt) {
    auto size = static_cast<uint32_t>(bytes.size());
    std::memcpy(bytes.data() + sizeAt, &size, sizeof(size));
    return std::move(bytes);
  }
  size_t size() const { return bytes.size(); }

private:
  void raw(const void *data, size_t size) {
    auto *first = static_cast<const std::byte *>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
  std::vector<std::byte> bytes;
};

void writeModel(Writer &writer, const TokenizerTable &table) {
  writer.choice(table.kind);
  writer.number(table.flags);
  writer.number(table.unknownId);
  for (int32_t id : table.byteIds)
    writer.number(id);
  std::string bytes;
  std::vector<uint32_t> ends;
  std::vector<uint8_t> flags;
  std::vector<float> scores;
  std::vector<double> exact;
  for (const TokenizerTable::Piece &piece : table.pieces) {
    bytes += piece.bytes;
    ends.push_back(static_cast<uint32_t>(bytes.size()));
    flags.push_back(piece.flags);
    if (table.kind == ModelKind::ExactUnigram)
      exact.push_back(piece.score);
    else if (table.kind != ModelKind::MergesByRank)
      scores.push_back(static_cast<float>(piece.score));
  }
  writer.list(ends);
  writer.string(bytes);
  writer.list(flags);
  if (table.kind == ModelKind::ExactUnigram)
    writer.list(exact);
  else
    writer.list(scores);
  static_assert(sizeof(TokenizerTable::Merge) == 12);
  writer.list(table.merges);
}

void writeNormalizer(Writer &writer, const TokenizerTable &table) {
  writer.count(table.normalizer.size());
  for (const TokenizerTable::NormalizerStep &step : table.normalizer) {
    writer.choice(step.kind);
    switch (step.kind) {
    case NormalizerKind::Prepend:
      writer.string(step.text);
      break;
    case NormalizerKind::Replace:
      writer.string(step.text);
      writer.string(step.replacement);
      break;
    case NormalizerKind::UnicodeForm:
      writer.choice(step.compose);
      writer.list(step.classes);
      writer.list(step.decompositions);
      writer.list(step.compositions);
      break;
    case NormalizerKind::SentencePiece:
      writer.number(step.rules);
      [[fallthrough]];
    case NormalizerKind::CharsMap:
      writer.string(step.trie);
      writer.string(step.replacements);
      break;
    case NormalizerKind::CharacterMap:
      writer.list(step.characters);
      break;
    case NormalizerKind::Strip:
      writer.choice(step.left);
      writer.choice(step.right);
      break;
    case NormalizerKind::ReplacePattern:
      writer.string(step.text);
      writer.string(step.replacement);
      break;
    }
  }
}

void writePreTokenizer(Writer &writer, const TokenizerTable &table) {
  writer.count(table.preTokenizer.size());
  for (const TokenizerTable::PreTokenizerStep &step : table.preTokenizer) {
    writer.choice(step.kind);
    if (step.kind == PreTokenizerKind::Split) {
      writer.choice(step.behavior);
      writer.choice(step.invert);
      writer.string(step.text);
    } else if (step.kind == PreTokenizerKind::Metaspace) {
      writer.choice(step.scheme);
      writer.choice(step.split);
      writer.string(step.text);
    }
  }
}

void writeDecoder(Writer &writer, const TokenizerTable::Decoder &decoder) {
  writer.choice(decoder.start);
  writer.number(decoder.count);
  writer.string(decoder.stripped);
  writer.string(decoder.unknownText);
  writer.count(decoder.replacements.size());
  for (const auto &[from, to] : decoder.replacements) {
    writer.string(from);
    writer.string(to);
  }
}

} // namespace

std::vector<std::byte> TokenizerTable::serialize() const {
  Writer writer;
  writer.number(tableMagic);
  writer.number(tableVersion);
  size_t sizeAt = writer.size();
  writer.count(0);
  writeModel(writer, *this);
  writeNormalizer(writer, *this);
  writePreTokenizer(writer, *this);
  writer.count(addedTokens.size());
  for (const AddedToken &token : addedTokens) {
    writer.number(token.id);
    writer.number(token.flags);
    writer.string(token.content);
  }
  writer.list(prefixIds);
  writer.list(suffixIds);
  writeDecoder(writer, decoder);
  return writer.finish(sizeAt);
}

} // namespace mica
