#include "frontend/text/tokenizer/GgufTokenizer.h"

#include "backends/runtime/text/base/Utf8.h"
#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/GgufPreTokenizers.h"
#include "frontend/text/tokenizer/TokenizerJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

namespace mica {

using namespace rt::tokenizer;

namespace {

/// The common prefix of the keys, which are named without it.
constexpr llvm::StringLiteral prefix = "tokenizer.ggml.";

/// Keys that are read here, and those that do not affect encoding. A star matches
/// anything.
constexpr llvm::StringLiteral knownKeys[] = {
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.remove_extra_whitespaces",
    // Ends of turns are read by config/gguf; the others are for other uses.
    "tokenizer.ggml.eo?_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.sep?rator_token_id",
    "tokenizer.ggml.cls_token_id",
    "tokenizer.ggml.mask_token_id",
    "tokenizer.ggml.fim_*_token_id",
    "tokenizer.ggml.prefix_token_id",
    "tokenizer.ggml.suffix_token_id",
    "tokenizer.ggml.middle_token_id",
    "tokenizer.ggml.token_type_count",
    "tokenizer.huggingface.json",
    "tokenizer.chat_template*",
};

/// Types of tokens, numbered from 1 as in sentencepiece.
enum class TokenType { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

class VocabularyReader {
public:
  explicit VocabularyReader(const GgufModel &model) : model(model), problem(model.path()) {}

  llvm::Expected<std::optional<TokenizerBuilder>> read();

private:
  const GgufValue *find(llvm::StringRef name) const { return model.find((prefix + name).str()); }
  JsonNode at(llvm::StringRef name) { return {nullptr, (prefix + name).str(), problem}; }
  void checkKeys();
  bool boolean(llvm::StringRef name, bool fallback);
  std::optional<int32_t> id(llvm::StringRef name);
  TokenType typeOf(size_t index) const {
    return types.empty() ? TokenType::Normal : static_cast<TokenType>(types[index]);
  }
  void readTokens();
  void readTypes();
  void readMerges();
  void readByteLevel();
  void addByteLevelPieces();
  void readVisibleSpaces();
  TokenizerTable::Piece *addTypedPiece(size_t index);
  void addVisiblePieces();
  void readScores();
  void readSentencePiece();
  void addScoredPieces();
  void addSpecialTokens();
  void place(bool beginsPrompt);

  const GgufModel &model;
  Problem problem;
  TokenizerBuilder builder;
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<float> scores;
};

void VocabularyReader::checkKeys() {
  llvm::SmallVector<llvm::StringRef> unknown;
  for (const auto &entry : model.metadata()) {
    llvm::StringRef key = entry.getKey();
    bool isKnown = llvm::any_of(knownKeys, [&](llvm::StringRef known) {
      return llvm::cantFail(llvm::GlobPattern::create(known)).match(key);
    });
    if (key.starts_with("tokenizer.") && !isKnown)
      unknown.push_back(key);
  }
  if (!unknown.empty())
    problem.report("",
                   "has the key " + inQuotes(*llvm::min_element(unknown)) +
                       ", which is unknown and could change the tokenization",
                   "remove it if it does not");
}

bool VocabularyReader::boolean(llvm::StringRef name, bool fallback) {
  const GgufValue *value = find(name);
  if (!value)
    return fallback;
  auto flag = value->boolean();
  if (!flag)
    at(name).refuse("true or false is expected");
  return flag.value_or(fallback);
}

std::optional<int32_t> VocabularyReader::id(llvm::StringRef name) {
  const GgufValue *value = find(name);
  if (!value)
    return std::nullopt;
  auto number = value->integer();
  if (number && *number >= 0 && *number < static_cast<int64_t>(tokens.size()))
    return static_cast<int32_t>(*number);
  at(name).refuse("the id " + value->shown() + " is not one of the " + llvm::Twine(tokens.size()) +
                  " tokens");
  return std::nullopt;
}

/// A token without text gets a placeholder.
void VocabularyReader::readTokens() {
  const GgufValue *value = find("tokens");
  auto list = value ? value->strings() : std::nullopt;
  if (!list || list->empty() || list->size() > maxPieces)
    return at("tokens").refuse("a list of strings is expected", hints::fetch);
  for (auto [index, text] : llvm::enumerate(*list))
    tokens.push_back(text.empty() ? "[EMPTY_" + std::to_string(index) + "]" : text.str());
}

void VocabularyReader::readTypes() {
  const GgufValue *value = find("token_type");
  if (!value)
    return;
  auto list = value->integers();
  if (!list || list->size() != tokens.size() ||
      llvm::any_of(*list, [](int64_t type) { return type < 1 || type > 6; }))
    return at("token_type").refuse("a type from 1 to 6 for every token is expected", hints::fetch);
  types = std::move(*list);
}

void VocabularyReader::addByteLevelPieces() {
  for (auto [index, token] : llvm::enumerate(tokens)) {
    builder.addPiece(token, index, at("tokens"));
    if (problem.found())
      return;
    TokenType type = typeOf(index);
    if (type == TokenType::Byte)
      return at("token_type").refuse("byte-level BPE has no tokens for single bytes");
    if (type != TokenType::Normal)
      builder.table.pieces[index].flags |= PieceFlags::unmatched;
  }
}

void VocabularyReader::readMerges() {
  const GgufValue *value = find("merges");
  auto merges = value ? value->strings() : std::nullopt;
  if (!merges || merges->size() > maxMerges)
    at("merges").refuse("a list of strings is expected", hints::fetch);
  if (problem.found())
    return;
  addMergeLines(*merges, builder, at("merges"));
  setByteIds(builder);
}

void VocabularyReader::readByteLevel() {
  const GgufValue *pre = find("pre");
  auto name = pre ? pre->string() : std::nullopt;
  const GgufPreTokenizer *known = name ? ggufPreTokenizerNamed(*name) : nullptr;
  if (!known)
    return at("pre").refuse((name ? "the pre-tokenizer " + inQuotes(*name) + " is not known"
                                  : "the name of a pre-tokenizer is missing"),
                            "choose a model with one of " + ggufPreTokenizerNames());
  builder.table.flags = ModelFlags::byteLevel;
  addByteLevelPieces();
  readMerges();
  if (problem.found())
    return;
  if (boolean("add_space_prefix", false))
    builder.table.preTokenizer.push_back({PreTokenizerKind::PrefixSpace});
  apply(*known, builder.table);
  place(known->beginsPrompt);
}

/// Adds a token as a piece, which is a byte if and only if that is the token's type, however others
/// are spelled. Returns null if the token is refused.
TokenizerTable::Piece *VocabularyReader::addTypedPiece(size_t index) {
  const std::string &token = tokens[index];
  bool isByte = typeOf(index) == TokenType::Byte;
  if (!isUtf8(token) || token.find('\0') != std::string::npos) {
    at("tokens").refuse("token " + llvm::Twine(index) + " is not a text", hints::fetch);
    return nullptr;
  }
  builder.bytePieces = isByte;
  builder.addPiece(token, index, at("tokens"));
  if (problem.found())
    return nullptr;
  TokenizerTable::Piece &piece = builder.table.pieces[index];
  if (isByte && piece.flags != PieceFlags::byte) {
    at("token_type").refuse("token " + inQuotes(token) + " is not a byte", hints::fetch);
    return nullptr;
  }
  if (isByte)
    builder.table.flags |= ModelFlags::byteFallback;
  return &piece;
}

void VocabularyReader::addVisiblePieces() {
  for (size_t index = 0; index < tokens.size(); ++index) {
    TokenizerTable::Piece *piece = addTypedPiece(index);
    if (!piece)
      return;
    TokenType type = typeOf(index);
    if (type != TokenType::Byte && type != TokenType::Normal)
      piece->flags |= PieceFlags::unmatched;
  }
}

/// As in tokenizer.json of Gemma 4: spaces become visible, all of a text is merged by rank, and
/// bytes replace what is no piece.
void VocabularyReader::readVisibleSpaces() {
  addVisiblePieces();
  readMerges();
  if (problem.found())
    return;
  TokenizerTable &table = builder.table;
  table.unknownId = id("unknown_token_id").value_or(-1);
  TokenizerTable::NormalizerStep step{NormalizerKind::Replace};
  step.text = " ";
  step.replacement = "\u2581";
  table.normalizer.push_back(std::move(step));
  table.decoder.replacements.emplace_back("\u2581", " ");
  if (boolean("add_space_prefix", false))
    at("add_space_prefix").refuseUnsupported("a space before the text");
  place(/*beginsPrompt=*/true);
}

void VocabularyReader::readScores() {
  const GgufValue *value = find("scores");
  auto list = value ? value->floats() : std::nullopt;
  if (!list || list->size() != tokens.size() ||
      !llvm::all_of(*list, [](float score) { return std::isfinite(score); }))
    return at("scores").refuse("a finite score for every token is expected", hints::fetch);
  scores = std::move(*list);
}

void VocabularyReader::addScoredPieces() {
  constexpr uint8_t flags[] = {PieceFlags::normal,      PieceFlags::unknown, PieceFlags::control,
                               PieceFlags::userDefined, PieceFlags::unused,  PieceFlags::byte};
  for (size_t index = 0; index < tokens.size(); ++index) {
    TokenizerTable::Piece *piece = addTypedPiece(index);
    if (!piece)
      return;
    TokenType type = typeOf(index);
    piece->flags = flags[static_cast<int>(type) - 1];
    piece->score = scores[index];
    if (type == TokenType::Byte)
      builder.table.byteIds[static_cast<uint8_t>(piece->bytes[0])] = static_cast<int32_t>(index);
  }
}

/// As in sentencepiece: spaces become visible, and one is prepended.
void VocabularyReader::readSentencePiece() {
  readScores();
  if (problem.found())
    return;
  TokenizerTable &table = builder.table;
  table.kind = ModelKind::MergesByScore;
  addScoredPieces();
  table.unknownId = id("unknown_token_id").value_or(-1);
  for (size_t index = 0; index < types.size() && table.unknownId < 0; ++index)
    if (typeOf(index) == TokenType::Unknown)
      table.unknownId = static_cast<int32_t>(index);
  bool prefixed = boolean("add_space_prefix", true),
       removes = boolean("remove_extra_whitespaces", false);
  TokenizerTable::NormalizerStep step{NormalizerKind::SentencePiece};
  step.rules = SentencePieceRules::escapeSpaces | (prefixed ? SentencePieceRules::dummyPrefix : 0) |
               (removes ? SentencePieceRules::removeExtraSpaces : 0);
  table.normalizer.push_back(std::move(step));
  table.decoder.replacements.emplace_back("\u2581", " ");
  table.decoder.unknownText = " \u2047 ";
  if (prefixed || removes) {
    table.decoder.start = removes ? DecoderStart::EachToken : DecoderStart::Stream;
    table.decoder.stripped = " ";
    table.decoder.count = 1;
  }
  place(/*beginsPrompt=*/true);
}

/// Tokens that are recognized in text: those of chats, and user-defined ones. Sentencepiece finds
/// the latter by itself.
void VocabularyReader::addSpecialTokens() {
  bool byScore = builder.table.kind == ModelKind::MergesByScore;
  for (auto [index, token] : llvm::enumerate(tokens)) {
    TokenType type = typeOf(index);
    bool isControl = type == TokenType::Control || (byScore && type == TokenType::Unknown);
    if (!isControl && (byScore || type != TokenType::UserDefined))
      continue;
    uint8_t flags = isControl ? AddedTokenFlags::special : AddedTokenFlags::normalized;
    builder.table.addedTokens.push_back({static_cast<int32_t>(index), flags, token});
  }
}

/// Reads the ids around a prompt.
void VocabularyReader::place(bool beginsPrompt) {
  TokenizerTable &table = builder.table;
  table.bosId = id("bos_token_id");
  table.eosId = id("eos_token_id");
  auto put = [&](llvm::StringRef name, bool fallback, std::optional<int32_t> token,
                 std::vector<int32_t> &ids) {
    bool wanted = boolean(name, fallback);
    if (wanted && !token && find(name))
      at(name).refuse("there is no such token to add", "set it to false");
    if (wanted && token)
      ids.push_back(*token);
  };
  put("add_bos_token", beginsPrompt, table.bosId, table.prefixIds);
  put("add_eos_token", false, table.eosId, table.suffixIds);
  if (boolean("add_sep_token", false))
    at("add_sep_token").refuseUnsupported("a separator after the prompt");
}

llvm::Expected<std::optional<TokenizerBuilder>> VocabularyReader::read() {
  const GgufValue *value = find("model");
  auto kind = value ? value->string() : std::nullopt;
  if (!value || kind == "none" || kind == "no_vocab")
    return std::nullopt;
  checkKeys();
  readTokens();
  readTypes();
  if (problem.found())
    return problem.take();
  if (kind == "gpt2")
    readByteLevel();
  else if (kind == "llama")
    readSentencePiece();
  else if (kind == "gemma4")
    readVisibleSpaces();
  else
    at("model").refuse("the tokenizer " + value->shown() + " is not known",
                       "choose a model with the tokenizer gemma4, gpt2 or llama");
  addSpecialTokens();
  if (problem.found())
    return problem.take();
  return std::move(builder);
}

} // namespace

llvm::Expected<std::optional<TokenizerBuilder>> readGgufTokenizer(const GgufModel &model) {
  return VocabularyReader(model).read();
}

} // namespace mica
