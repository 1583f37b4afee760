//===- TokenizerTable.h - tokenizers in a program's format ------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERTABLE_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERTABLE_H

#include "backends/runtime/text/tokenizer/TableFormat.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica {

/// A tokenizer of any published format, in the terms of TableFormat.h, which documents the
/// fields.
struct TokenizerTable {
  struct Piece {
    std::string bytes;
    uint8_t flags = rt::tokenizer::PieceFlags::normal;
    double score = 0; // f32 in all but ExactUnigram
  };
  struct Merge {
    uint32_t left, right, merged;
  };
  struct NormalizerStep {
    rt::tokenizer::NormalizerKind kind;
    std::string text = {}, replacement = {};
    bool compose = false;
    std::vector<uint32_t> classes = {}, decompositions = {}, compositions = {};
    std::vector<uint32_t> characters = {};
    bool left = false, right = false;
    uint8_t rules = 0;
    std::string trie = {}, replacements = {};
  };
  struct PreTokenizerStep {
    rt::tokenizer::PreTokenizerKind kind;
    rt::tokenizer::SplitBehavior behavior = rt::tokenizer::SplitBehavior::Isolated;
    bool invert = false, split = false;
    rt::tokenizer::PrependScheme scheme = rt::tokenizer::PrependScheme::Never;
    std::string text = {};
  };
  struct AddedToken {
    int32_t id;
    uint8_t flags;
    std::string content;
  };
  struct Decoder {
    rt::tokenizer::DecoderStart start = rt::tokenizer::DecoderStart::Nothing;
    uint32_t count = 0;
    std::string stripped, unknownText;
    std::vector<std::pair<std::string, std::string>> replacements;
  };

  rt::tokenizer::ModelKind kind = rt::tokenizer::ModelKind::MergesByRank;
  uint32_t flags = 0;
  int32_t unknownId = -1;
  std::array<int32_t, 256> byteIds = noByteIds();
  std::vector<Piece> pieces;
  std::vector<Merge> merges;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> preTokenizer;
  std::vector<AddedToken> addedTokens;
  std::vector<int32_t> prefixIds, suffixIds;
  Decoder decoder;

  /// Start and end of a text according to the tokenizer's files; not part of the bytes.
  std::optional<int32_t> bosId, eosId;

  /// Digits are split after ByteLevel, which restricts the pieces (checkDigitsOfBytes).
  bool splitsDigitsOfBytes = false;

  std::vector<std::byte> serialize() const;

  static std::array<int32_t, 256> noByteIds() {
    std::array<int32_t, 256> ids;
    ids.fill(-1);
    return ids;
  }
};

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERTABLE_H
