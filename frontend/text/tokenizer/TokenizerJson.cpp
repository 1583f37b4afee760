#include "frontend/text/tokenizer/TokenizerJson.h"

#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/ByteAlphabet.h"
#include "frontend/text/tokenizer/DecoderReader.h"
#include "frontend/text/tokenizer/NormalizerReader.h"
#include "frontend/text/tokenizer/PostProcessorReader.h"
#include "frontend/text/tokenizer/PreTokenizerReader.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <charconv>
#include <cmath>

namespace mica {

using namespace rt::tokenizer;

namespace {

void readVocab(const JsonNode &node, TokenizerBuilder &builder) {
  const llvm::json::Object &vocab = node.object();
  if (vocab.empty() || vocab.size() > maxPieces)
    return node.refuse("a vocabulary of " + llvm::Twine(vocab.size()) + " pieces", hints::fetch);
  // In order of ids, so that gaps are detected correctly.
  std::vector<std::pair<int64_t, llvm::StringRef>> entries;
  for (const auto &entry : vocab) {
    auto id = entry.second.getAsInteger();
    if (!id)
      return node[entry.first].refuse("a whole number is expected");
    entries.emplace_back(*id, entry.first);
  }
  llvm::sort(entries);
  for (const auto &[id, spelling] : entries)
    builder.addPiece(spelling, id, node);
}

/// The merges under construction, with a lookup of duplicates.
class MergeList {
public:
  MergeList(TokenizerBuilder &builder, const JsonNode &where) : builder(builder), where(where) {}

  void add(llvm::StringRef left, llvm::StringRef right, size_t index) {
    auto leftId = builder.find(left), rightId = builder.find(right);
    auto merged = builder.find((left + right).str());
    if (!leftId || !rightId || !merged)
      return where.refuseAt(index,
                            "the merge of " + inQuotes(left) + " and " + inQuotes(right) +
                                " needs pieces that the vocabulary lacks",
                            hints::fetch);
    if (!seen.insert({*leftId, *rightId}).second)
      return where.refuseAt(
          index, "the merge of " + inQuotes(left) + " and " + inQuotes(right) + " occurs twice",
          "keep one");
    builder.table.merges.push_back({static_cast<uint32_t>(*leftId), static_cast<uint32_t>(*rightId),
                                    static_cast<uint32_t>(*merged)});
  }
  /// "left right"
  void addLine(llvm::StringRef line, size_t index) {
    auto [left, right] = line.split(' ');
    if (left.empty() || right.empty() || right.contains(' '))
      return where.refuseAt(index,
                            "a merge is two pieces with a space between, not " + inQuotes(line));
    add(left, right, index);
  }

private:
  TokenizerBuilder &builder;
  const JsonNode &where;
  llvm::DenseSet<std::pair<int32_t, int32_t>> seen;
};

void readMerges(const JsonNode &node, TokenizerBuilder &builder) {
  const llvm::json::Array &list = node.array();
  // No test: such a file has some hundred megabytes.
  if (list.size() > maxMerges)
    return node.refuse("too many merges", hints::fetch);
  MergeList merges(builder, node);
  for (size_t i = 0; i < list.size(); ++i) {
    const llvm::json::Array *pair = list[i].getAsArray();
    auto left = pair && pair->size() == 2 ? (*pair)[0].getAsString() : std::nullopt;
    auto right = pair && pair->size() == 2 ? (*pair)[1].getAsString() : std::nullopt;
    if (left && right)
      merges.add(*left, *right, i);
    else if (auto line = list[i].getAsString())
      merges.addLine(*line, i);
    else
      node.refuseAt(i, "a merge is two pieces");
  }
}

/// `score` as the tokenizers package parses it from its shortest decimal form: all digits as one
/// number, divided by a power of ten, with both steps rounded. The last bit decides between
/// segmentations with equal sums.
double scoreOfPackage(double score) {
  char text[40];
  auto written =
      std::to_chars(text, text + sizeof text, std::abs(score), std::chars_format::scientific);
  llvm::StringRef mantissa, power;
  std::tie(mantissa, power) = llvm::StringRef(text, written.ptr - text).split('e');
  auto [whole, decimals] = mantissa.split('.');
  uint64_t digits = 0;
  int exponent = 0;
  bool broken = !llvm::to_integer((whole + decimals).str(), digits, 10) ||
                !llvm::to_integer(power.ltrim('+'), exponent, 10);
  exponent -= static_cast<int>(decimals.size());
  if (broken || std::abs(exponent) > 300)
    return score;
  double scale = 1;
  std::string one = "1e" + std::to_string(std::abs(exponent));
  std::from_chars(one.data(), one.data() + one.size(), scale);
  double value = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? value / scale : value * scale, score);
}

/// Reads pieces with scores, in order of ids.
void readScoredVocab(const JsonNode &node, TokenizerBuilder &builder) {
  const llvm::json::Array &list = node.array();
  if (list.empty() || list.size() > maxPieces)
    return node.refuse("a vocabulary of " + llvm::Twine(list.size()) + " pieces", hints::fetch);
  for (size_t i = 0; i < list.size(); ++i) {
    const llvm::json::Array *pair = list[i].getAsArray();
    auto spelling = pair && pair->size() == 2 ? (*pair)[0].getAsString() : std::nullopt;
    auto score = pair && pair->size() == 2 ? (*pair)[1].getAsNumber() : std::nullopt;
    if (!spelling || !score)
      return node.refuseAt(i, "a piece and its score are expected", hints::fetch);
    builder.addPiece(*spelling, static_cast<int64_t>(i), node);
    if (i >= builder.table.pieces.size())
      return; // refused
    builder.table.pieces[i].score = scoreOfPackage(*score);
  }
}

void readUnigram(const JsonNode &node, TokenizerBuilder &builder) {
  if (builder.table.flags & ModelFlags::byteLevel)
    return node.refuseUnsupported("a byte-level Unigram model");
  node.allowKeys({"type", "unk_id", "vocab", "byte_fallback"});
  builder.table.kind = ModelKind::ExactUnigram;
  builder.table.flags |= node["byte_fallback"].boolean(false) ? ModelFlags::byteFallback : 0;
  readScoredVocab(node["vocab"], builder);
  setByteIds(builder);
  if (!node["unk_id"].absent())
    builder.table.unknownId = static_cast<int32_t>(
        node["unk_id"].integer(0, static_cast<int64_t>(builder.table.pieces.size()) - 1));
}

void readModel(const JsonNode &node, TokenizerBuilder &builder) {
  std::string type = node["type"].string("BPE"); // old files leave it out
  if (type == "Unigram")
    return readUnigram(node, builder);
  if (type != "BPE")
    return node.refuseType(type, "model");
  node.allowKeys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                  "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
                  "cache_capacity"});
  for (llvm::StringRef key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!node[key].string("").empty())
      node[key].refuse("WordPiece-style prefixes and suffixes are not supported",
                       "use a model without them");
  if (!node["dropout"].absent())
    node["dropout"].refuse("dropout makes ids random", "set it to null");
  auto flag = [&](llvm::StringRef key, uint32_t bit) {
    builder.table.flags |= node[key].boolean(false) ? bit : 0;
  };
  flag("fuse_unk", ModelFlags::fuseUnknown);
  flag("byte_fallback", ModelFlags::byteFallback);
  flag("ignore_merges", ModelFlags::ignoreMerges);
  readVocab(node["vocab"], builder);
  readMerges(node["merges"], builder);
  setByteIds(builder);
  if (!node["unk_token"].absent()) {
    auto unknown = builder.find(node["unk_token"].string());
    if (!unknown)
      node["unk_token"].refuse("the vocabulary lacks this piece", "use a token of the vocabulary");
    builder.table.unknownId = unknown.value_or(-1);
  }
}

void readAddedTokens(const JsonNode &node, TokenizerBuilder &builder) {
  if (node.absent())
    return;
  for (size_t i = 0; i < node.array().size(); ++i) {
    JsonNode token = node.at(i);
    builder.readAddedToken(token, token["id"].integer(0, maxPieces - 1));
  }
}

} // namespace

void addMergeLines(llvm::ArrayRef<llvm::StringRef> lines, TokenizerBuilder &builder,
                   const JsonNode &where) {
  MergeList merges(builder, where);
  for (auto [index, line] : llvm::enumerate(lines))
    merges.addLine(line, index);
}

void setByteIds(TokenizerBuilder &builder) {
  bool byteLevel = builder.table.flags & ModelFlags::byteLevel;
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling = byteLevel ? byteLevelChar(static_cast<uint8_t>(byte))
                                     : "<0x" + llvm::utohexstr(byte, false, 2) + ">";
    builder.table.byteIds[byte] = builder.find(spelling).value_or(-1);
  }
}

llvm::Expected<TokenizerBuilder> readTokenizerJson(const llvm::json::Value &root,
                                                   llvm::StringRef file) {
  Problem problem(file);
  JsonNode node(&root, "", problem);
  TokenizerBuilder builder;
  // Truncation and padding are for batches in training; prompts are neither truncated nor padded.
  node.allowKeys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                  "post_processor", "decoder", "model"});
  readNormalizer(node["normalizer"], builder.table);
  readPreTokenizer(node["pre_tokenizer"], builder.table);
  readDecoder(node["decoder"], builder.table, builder.bytePieces);
  if (!problem.found())
    readModel(node["model"], builder);
  if (!problem.found() && builder.table.splitsDigitsOfBytes)
    checkDigitsOfBytes(node["pre_tokenizer"], builder.table);
  readAddedTokens(node["added_tokens"], builder);
  if (!problem.found())
    readPostProcessor(node["post_processor"], builder.table);
  if (problem.found())
    return problem.take();
  return builder;
}

llvm::Expected<TokenizerBuilder> readVocabAndMerges(const llvm::json::Value &vocab,
                                                    llvm::StringRef vocabFile,
                                                    llvm::StringRef merges,
                                                    llvm::StringRef mergesFile) {
  TokenizerBuilder builder;
  builder.table.flags = ModelFlags::byteLevel;
  Problem problem(vocabFile), mergesProblem(mergesFile);
  readVocab(JsonNode(&vocab, "", problem), builder);
  if (problem.found())
    return problem.take();
  JsonNode where(nullptr, "merges", mergesProblem);
  MergeList list(builder, where);
  size_t line = 0;
  for (; !merges.empty() && !mergesProblem.found(); ++line) {
    llvm::StringRef text;
    std::tie(text, merges) = merges.split('\n');
    text.consume_back("\r");
    if (text.empty() || (line == 0 && text.starts_with("#version")))
      continue;
    list.addLine(text, line);
  }
  if (mergesProblem.found())
    return mergesProblem.take();
  setByteIds(builder);
  return builder;
}

} // namespace mica
