#include "frontend/text/tokenizer/SentencePieceModel.h"

#include "backends/runtime/text/base/Utf8.h"
#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/WireReader.h"

#include <cmath>
#include <sentencepiece_processor.h>

namespace mica {

using namespace rt::tokenizer;

namespace {

constexpr llvm::StringLiteral visibleSpace = "\u2581";

/// The fields of sentencepiece_model.proto that affect encoding, with the defaults of that
/// file.
struct Spec {
  uint64_t modelType = 1; // 1 unigram, 2 BPE, 3 word, 4 char
  bool byteFallback = false, spaceAsSuffix = false;
  bool dummyPrefix = true, removeExtraSpaces = true, escapeSpaces = true;
  std::string unknownSurface = " \u2047 ";
  std::string charsMap;
  bool denormalizer = false;
};

bool readTrainerSpec(llvm::StringRef message, Spec &spec) {
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    switch (field.number) {
    case 3:
      spec.modelType = field.integer;
      break;
    case 24:
      spec.spaceAsSuffix = field.integer != 0;
      break;
    case 35:
      spec.byteFallback = field.integer != 0;
      break;
    case 44:
      spec.unknownSurface = field.bytes.str();
      break;
    }
  }
  return !reader.broken;
}

bool readNormalizerSpec(llvm::StringRef message, Spec &spec) {
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    switch (field.number) {
    case 2:
      spec.charsMap = field.bytes.str();
      break;
    case 3:
      spec.dummyPrefix = field.integer != 0;
      break;
    case 4:
      spec.removeExtraSpaces = field.integer != 0;
      break;
    case 5:
      spec.escapeSpaces = field.integer != 0;
      break;
    }
  }
  return !reader.broken;
}

/// Converts piece, score and type of a SentencePiece message to a piece of the table.
bool readPiece(llvm::StringRef message, TokenizerBuilder &builder, const JsonNode &where) {
  std::string spelling;
  float score = 0;
  uint64_t type = 1;
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.number == 1)
      spelling = field.bytes.str();
    else if (field.number == 2)
      score = field.asFloat();
    else if (field.number == 3)
      type = field.integer;
  }
  // NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE
  constexpr uint8_t flags[] = {PieceFlags::normal,      PieceFlags::unknown, PieceFlags::control,
                               PieceFlags::userDefined, PieceFlags::unused,  PieceFlags::byte};
  size_t id = builder.table.pieces.size();
  if (reader.broken || type < 1 || type > 6 || !std::isfinite(score) || spelling.empty() ||
      spelling.find('\0') != std::string::npos || !isUtf8(spelling) || id >= maxPieces)
    return false;
  builder.bytePieces = flags[type - 1] == PieceFlags::byte;
  builder.addPiece(spelling, static_cast<int64_t>(id), where);
  if (builder.table.pieces.size() != id + 1)
    return false;
  TokenizerTable::Piece &piece = builder.table.pieces.back();
  if (builder.bytePieces && piece.flags != PieceFlags::byte)
    return false; // not spelled <0xAB>
  piece.flags = flags[type - 1];
  piece.score = score;
  if (piece.flags == PieceFlags::byte)
    builder.table.byteIds[static_cast<uint8_t>(piece.bytes[0])] = static_cast<int32_t>(id);
  return true;
}

bool readMessage(llvm::StringRef bytes, TokenizerBuilder &builder, Spec &spec,
                 const JsonNode &where) {
  WireReader reader(bytes);
  for (WireField field; reader.next(field);) {
    bool good = true;
    if (field.number == 1)
      good = readPiece(field.bytes, builder, where);
    else if (field.number == 2)
      good = readTrainerSpec(field.bytes, spec);
    else if (field.number == 3)
      good = readNormalizerSpec(field.bytes, spec);
    else if (field.number == 5)
      spec.denormalizer =
          llvm::StringRef(field.bytes).contains('\x12'); // a character map of its own
    if (!good)
      return false;
  }
  return !reader.broken;
}

} // namespace

bool setCharsMap(llvm::StringRef map, TokenizerTable::NormalizerStep &step) {
  if (map.empty())
    return true;
  uint32_t trieBytes = 0;
  if (map.size() < sizeof(trieBytes) || map.size() > maxCharsMapBytes)
    return false;
  std::memcpy(&trieBytes, map.data(), sizeof(trieBytes));
  map = map.drop_front(sizeof(trieBytes));
  if (trieBytes > map.size() || trieBytes % 4 != 0 || trieBytes == 0 || map.back() != '\0')
    return false;
  step.trie = map.take_front(trieBytes).str();
  step.replacements = map.drop_front(trieBytes).str();
  return true;
}

namespace {

bool setNormalizer(const Spec &spec, TokenizerTable &table) {
  TokenizerTable::NormalizerStep step{NormalizerKind::SentencePiece};
  auto rule = [&](bool set, uint8_t bit) { step.rules |= set ? bit : 0; };
  rule(spec.dummyPrefix, SentencePieceRules::dummyPrefix);
  rule(spec.removeExtraSpaces, SentencePieceRules::removeExtraSpaces);
  rule(spec.escapeSpaces, SentencePieceRules::escapeSpaces);
  rule(spec.spaceAsSuffix, SentencePieceRules::spaceAsSuffix);
  bool good = setCharsMap(spec.charsMap, step);
  table.normalizer.push_back(std::move(step));
  return good;
}

void setDecoder(const Spec &spec, TokenizerTable &table) {
  table.decoder.replacements.emplace_back(visibleSpace.str(), " ");
  table.decoder.unknownText = spec.unknownSurface;
  if (!spec.dummyPrefix && !spec.removeExtraSpaces)
    return;
  table.decoder.start = spec.removeExtraSpaces ? DecoderStart::EachToken : DecoderStart::Stream;
  table.decoder.stripped = " ";
  table.decoder.count = 1;
}

/// The error of the sentencepiece library for the message; empty: none.
std::string refusalOf(sentencepiece::SentencePieceProcessor &library, llvm::StringRef bytes) {
  // The library's trie throws at some pieces instead of returning a status.
  try {
    auto status = library.LoadFromSerializedProto({bytes.data(), bytes.size()});
    return status.ok() ? std::string() : "error " + status.ToString();
  } catch (const std::exception &error) {
    return error.what();
  }
}

} // namespace

llvm::Expected<TokenizerBuilder> readSentencePieceModel(llvm::StringRef bytes,
                                                        llvm::StringRef file) {
  auto refuse = [&](const llvm::Twine &what) { return inputError(file, what, hints::fetch); };
  auto refuseKind = [&](const llvm::Twine &what) {
    return inputError(file, what + " is not supported", "use a model with another tokenizer");
  };
  Problem problem(file);
  TokenizerBuilder builder;
  Spec spec;
  if (!readMessage(bytes, builder, spec, JsonNode(nullptr, "pieces", problem)))
    return problem.found() ? problem.take() : refuse("not a sentencepiece model, or a broken one");
  if (problem.found())
    return problem.take();
  if (spec.modelType != 1 && spec.modelType != 2)
    return refuseKind("a sentencepiece model of a type that is neither BPE nor Unigram");
  if (spec.denormalizer)
    return refuseKind("a sentencepiece model with a denormalizer");
  TokenizerTable &table = builder.table;
  if (!setNormalizer(spec, table))
    return refuse("the sentencepiece model's character map is broken");
  sentencepiece::SentencePieceProcessor library;
  if (std::string why = refusalOf(library, bytes); !why.empty())
    return refuse("sentencepiece rejects this model: " + why);
  // No test: every message that both have read has had the same pieces.
  if (static_cast<size_t>(library.GetPieceSize()) != table.pieces.size())
    return refuse("sentencepiece reads another number of pieces");
  table.kind = spec.modelType == 2 ? ModelKind::MergesByScore : ModelKind::Unigram;
  table.flags = spec.byteFallback ? ModelFlags::byteFallback : 0;
  table.unknownId = library.unk_id();
  setDecoder(spec, table);
  if (library.bos_id() >= 0)
    table.bosId = library.bos_id();
  if (library.eos_id() >= 0)
    table.eosId = library.eos_id();
  return builder;
}

} // namespace mica
