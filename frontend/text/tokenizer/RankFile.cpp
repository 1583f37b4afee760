#include "frontend/text/tokenizer/RankFile.h"

#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/ByteAlphabet.h"
#include "frontend/text/tokenizer/PreTokenizerReader.h"
#include "frontend/text/tokenizer/RegexTranslation.h"
#include "frontend/text/tokenizer/SplitPatterns.h"
#include "frontend/text/tokenizer/TokenizerJson.h"
#include "frontend/text/tokenizer/UnicodeTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Path.h"

namespace mica {

using namespace rt::tokenizer;

namespace {

/// A special token and the offset of its id from the last rank.
struct SpecialToken {
  llvm::StringLiteral content;
  int32_t offset;
};

constexpr SpecialToken cl100kTokens[] = {{"<|endoftext|>", 2},
                                         {"<|fim_prefix|>", 3},
                                         {"<|fim_middle|>", 4},
                                         {"<|fim_suffix|>", 5},
                                         {"<|endofprompt|>", 21}};
constexpr SpecialToken o200kTokens[] = {{"<|endoftext|>", 2}, {"<|endofprompt|>", 21}};
constexpr SpecialToken qwenTokens[] = {
    {"<|endoftext|>", 1}, {"<|im_start|>", 2}, {"<|im_end|>", 3}};
constexpr SpecialToken arcadeTokens[] = {
    {"<|endoftext|>", 2},    {"<|fim_prefix|>", 3},    {"<|fim_middle|>", 4},
    {"<|fim_suffix|>", 5},   {"<|fim_pad|>", 6},       {"<gh_stars>", 7},
    {"<filename>", 8},       {"<issue_start>", 9},     {"<issue_comment>", 10},
    {"<issue_closed>", 11},  {"<jupyter_start>", 12},  {"<jupyter_text>", 13},
    {"<jupyter_code>", 14},  {"<jupyter_output>", 15}, {"<empty_output>", 16},
    {"<commit_before>", 17}, {"<commit_msg>", 18},     {"<commit_after>", 19},
    {"<reponame>", 20},      {"<|endofprompt|>", 21},  {"<|im_start|>", 22},
    {"<|im_end|>", 23},      {"<|pause|>", 24},        {"<|reg0|>", 25},
    {"<|reg1|>", 26},        {"<|reg2|>", 27},         {"<|reg3|>", 28},
    {"<|reg4|>", 29},        {"<|reg5|>", 30},         {"<|reg6|>", 31},
    {"<|reg7|>", 32},        {"<|extra0|>", 33}};

/// The parts of a tokenizer that its rank file does not contain.
struct RankRules {
  llvm::StringLiteral className, fileName; ///< identify the tokenizer; either may be empty
  llvm::StringLiteral pattern;
  llvm::ArrayRef<SpecialToken> tokens;
  size_t ranks;          ///< number of ranks in the published file; special tokens follow
  bool composes = false; ///< text is normalized to NFC
  int32_t extras = 0;    ///< number of special tokens <|extra_0|>, <|extra_1|>, ...
};

constexpr RankRules rules[] = {
    {"", "cl100k_base.tiktoken", split_patterns::cl100k[0], cl100kTokens, 100256},
    {"", "o200k_base.tiktoken", split_patterns::gpt4o[0], o200kTokens, 199998},
    {"QWenTokenizer", "qwen.tiktoken", split_patterns::qwen2[0], qwenTokens, 151643, true, 205},
    {"Arcade100kTokenizer", "arcade100k.tiktoken", split_patterns::qwen2[0], arcadeTokens, 100256,
     true},
};

const RankRules *rulesFor(llvm::StringRef className, llvm::StringRef file) {
  llvm::StringRef name = llvm::sys::path::filename(file);
  for (const RankRules &rule : rules)
    if (className.empty() ? !rule.fileName.empty() && rule.fileName == name
                          : rule.className == className)
      return &rule;
  return nullptr;
}

/// The piece and rank of a line; nothing if the line is invalid.
std::optional<std::pair<std::string, int64_t>> readLine(llvm::StringRef line) {
  auto [encoded, number] = line.split(' ');
  std::vector<char> piece;
  int64_t rank = 0;
  if (number.getAsInteger(10, rank) || rank < 0 || rank >= maxPieces || encoded.empty())
    return std::nullopt;
  if (llvm::Error error = llvm::decodeBase64(encoded, piece)) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  return std::pair(std::string(piece.begin(), piece.end()), rank);
}

/// Byte-level vocabularies are spelled in the byte alphabet of tokenizer.json.
std::string spelling(llvm::StringRef bytes) {
  std::string out;
  for (char byte : bytes)
    out += byteLevelChar(static_cast<uint8_t>(byte));
  return out;
}

void readRanks(llvm::StringRef text, TokenizerBuilder &builder, const JsonNode &where) {
  std::vector<std::pair<int64_t, std::string>> pieces;
  for (size_t number = 0; !text.empty(); ++number) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    line.consume_back("\r");
    if (line.empty())
      continue;
    auto read = readLine(line);
    if (!read)
      return where.refuseAt(number, "a line is a piece in base64, a space and its rank",
                            hints::fetch);
    pieces.emplace_back(read->second, std::move(read->first));
  }
  llvm::sort(pieces);
  for (auto [index, piece] : llvm::enumerate(pieces))
    if (piece.first > static_cast<int64_t>(index))
      return where.refuse("the rank " + llvm::Twine(index) + " is missing", hints::fetch);
  for (const auto &[rank, bytes] : pieces) {
    builder.addPiece(spelling(bytes), rank, where);
    if (static_cast<size_t>(rank) < builder.table.pieces.size())
      builder.table.pieces[rank].score = -static_cast<double>(rank);
  }
  setByteIds(builder);
  for (int byte = 0; byte < 256; ++byte)
    if (builder.table.byteIds[byte] == -1)
      return where.refuse("the byte " + llvm::Twine(byte) + " has no rank", hints::fetch);
}

void addTokens(const RankRules &rule, TokenizerBuilder &builder, const JsonNode &where) {
  auto last = static_cast<int32_t>(builder.table.pieces.size()) - 1;
  auto add = [&](llvm::StringRef content, int32_t id) {
    builder.addToken({id, AddedTokenFlags::special, content.str()}, where);
  };
  for (const SpecialToken &token : rule.tokens)
    add(token.content, last + token.offset);
  for (int32_t i = 0; i < rule.extras; ++i)
    add("<|extra_" + std::to_string(i) + "|>", last + 4 + i);
}

} // namespace

bool isKnownRankFile(llvm::StringRef file) { return rulesFor("", file) != nullptr; }

llvm::Expected<TokenizerBuilder> readRankFile(llvm::StringRef text, llvm::StringRef file,
                                              const llvm::json::Value *config, bool published) {
  Problem problem(file);
  JsonNode where(nullptr, "ranks", problem), settings(config, "", problem);
  std::string className = settings["tokenizer_class"].string("");
  const RankRules *rule = rulesFor(className, file);
  if (!rule)
    return inputError(file,
                      "the pre-tokenization for this rank file" +
                          (className.empty() ? "" : " of the class " + inQuotes(className)) +
                          " is unknown",
                      "add a tokenizer.json");
  TokenizerBuilder builder;
  builder.table.kind = ModelKind::MergesByScore;
  builder.table.flags = ModelFlags::byteLevel | ModelFlags::ignoreMerges;
  if (rule->composes)
    builder.table.normalizer.push_back(unicodeFormStep(UnicodeForm::NFC));
  builder.table.preTokenizer.push_back(isolate(llvm::cantFail(translateRegex(rule->pattern))));
  readRanks(text, builder, where);
  if (published && !problem.found() && builder.table.pieces.size() != rule->ranks)
    where.refuse("has " + llvm::Twine(builder.table.pieces.size()) + " ranks, expected " +
                     llvm::Twine(rule->ranks) + " as in " + rule->fileName,
                 hints::fetch);
  if (!problem.found())
    addTokens(*rule, builder, where);
  if (problem.found())
    return problem.take();
  return builder;
}

} // namespace mica
