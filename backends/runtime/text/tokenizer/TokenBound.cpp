#include "backends/runtime/text/tokenizer/TokenBound.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Normalizer.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace mica::rt::tokenizer {
namespace {

size_t quotientUp(size_t a, size_t b) { return (a + b - 1) / b; }

size_t bytesOf(uint32_t codePoint) {
  std::string text;
  appendChar(text, codePoint);
  return text.size();
}

/// By which factor decomposition shrinks a text at most.
std::optional<size_t> shrinkOfDecompositions(const Array<uint32_t> &list) {
  size_t shrink = 1;
  for (size_t i = 0; i + 1 < list.size(); i += 2 + list[i + 1]) {
    size_t bytes = 0;
    for (size_t k = 0; k < list[i + 1]; ++k)
      bytes += bytesOf(list[i + 2 + k]);
    if (bytes == 0)
      return std::nullopt;
    shrink = std::max(shrink, quotientUp(bytesOf(list[i]), bytes));
  }
  return shrink;
}

/// The same for composition. A composed character may be composed further.
std::optional<size_t> shrinkOfCompositions(const Array<uint32_t> &list) {
  std::unordered_map<uint32_t, size_t> composed; // the bytes that the character replaces
  auto replaced = [&](uint32_t codePoint) {
    auto found = composed.find(codePoint);
    return found == composed.end() ? bytesOf(codePoint) : found->second;
  };
  constexpr int maxRounds = 8; // four marks are the most in Unicode
  size_t shrink = 3;           // of a Hangul syllable: three characters of three bytes
  for (int round = 0; round < maxRounds; ++round) {
    bool changed = false;
    for (size_t i = 0; i + 2 < list.size(); i += 3) {
      size_t bytes = replaced(list[i]) + replaced(list[i + 1]);
      if (bytes <= replaced(list[i + 2]))
        continue;
      composed[list[i + 2]] = bytes;
      shrink = std::max(shrink, quotientUp(bytes, bytesOf(list[i + 2])));
      changed = true;
    }
    if (!changed)
      return shrink;
  }
  return std::nullopt;
}

/// By which factor a step shrinks a text at most.
std::optional<size_t> shrinkOf(const NormalizerStep &step) {
  if (step.kind == NormalizerKind::Prepend)
    return 1;
  if (step.kind == NormalizerKind::Replace && step.text.size() <= step.replacement.size())
    return 1;
  if (step.kind != NormalizerKind::UnicodeForm)
    return std::nullopt;
  std::optional<size_t> decomposed = shrinkOfDecompositions(step.decompositions);
  std::optional<size_t> composed = step.compose ? shrinkOfCompositions(step.compositions) : 1;
  return decomposed && composed ? std::optional(*decomposed * *composed) : std::nullopt;
}

bool keepsText(const PreTokenizerStep &step) {
  return step.kind == PreTokenizerKind::Split       ? step.behavior != SplitBehavior::Removed
         : step.kind == PreTokenizerKind::Metaspace ? !step.text.empty()
                                                    : true;
}

/// Whether each byte that UTF-8 uses has an id, so that no character is unknown.
bool coversAllBytes(const Table &table) {
  if (!table.has(ModelFlags::byteLevel) && !table.has(ModelFlags::byteFallback))
    return false;
  for (int byte = 0; byte < 256; ++byte) {
    bool isUsed = byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);
    int32_t id = table.byteIds[static_cast<size_t>(byte)];
    if (isUsed && (id == -1 || table.piece(static_cast<uint32_t>(id)).empty()))
      return false;
  }
  return true;
}

/// Whether a merged piece is the text of both parts.
bool mergesKeepText(const Table &table) {
  for (size_t i = 0; i < table.merges.size(); ++i) {
    Merge merge = table.merges[i];
    if (table.piece(merge.merged).size() !=
        table.piece(merge.left).size() + table.piece(merge.right).size())
      return false;
  }
  return true;
}

} // namespace

std::optional<size_t> maxBytesPerToken(const Table &table, const Normalizer &normalizer) {
  constexpr uint8_t strips = AddedTokenFlags::stripLeft | AddedTokenFlags::stripRight;
  bool keepsAll = table.kind == ModelKind::MergesByRank && coversAllBytes(table) &&
                  mergesKeepText(table) && std::ranges::all_of(table.preTokenizer, keepsText) &&
                  std::ranges::none_of(table.addedTokens, [](const AddedToken &token) {
                    return (token.flags & strips) != 0;
                  });
  if (!keepsAll)
    return std::nullopt;
  size_t shrink = 1, longest = 1;
  for (const NormalizerStep &step : table.normalizer) {
    std::optional<size_t> ofStep = shrinkOf(step);
    if (!ofStep)
      return std::nullopt;
    shrink *= *ofStep;
  }
  for (uint32_t id = 0; id < table.pieces(); ++id)
    longest = std::max(longest, table.piece(id).size());
  for (const AddedToken &token : table.addedTokens) {
    longest = std::max(longest, token.content.size());
    // It may be matched in normalized text, by its normalized spelling.
    if (!(token.flags & AddedTokenFlags::normalized))
      continue;
    Result<std::string> text = normalizer.apply(token.content);
    if (!text)
      return std::nullopt;
    longest = std::max(longest, text->size());
  }
  return shrink * longest;
}

} // namespace mica::rt::tokenizer
