#include "frontend/text/tokenizer/ReadTokenizer.h"

#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"
#include "frontend/support/MappedFile.h"
#include "frontend/text/tokenizer/GgufTokenizer.h"
#include "frontend/text/tokenizer/RankFile.h"
#include "frontend/text/tokenizer/SentencePieceModel.h"
#include "frontend/text/tokenizer/TokenizerConfig.h"
#include "frontend/text/tokenizer/TokenizerJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mica {
namespace {

/// Published files reach 35 MB and two million values.
constexpr JsonLimits limits{size_t(256) << 20, size_t(1) << 25, 32};

std::string in(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Expected<llvm::json::Value> readJson(llvm::StringRef path) {
  auto object = readJsonObject(path, limits);
  if (!object)
    return object.takeError();
  return llvm::json::Value(std::move(*object));
}

llvm::Expected<TokenizerBuilder> readJsonTokenizer(llvm::StringRef path) {
  auto root = readJson(path);
  return root ? readTokenizerJson(*root, path) : root.takeError();
}

llvm::Expected<TokenizerBuilder> readPieces(llvm::StringRef path) {
  auto file = MappedFile::open(path);
  return file ? readSentencePieceModel(llvm::toStringRef(file->bytes()), path) : file.takeError();
}

llvm::Expected<TokenizerBuilder> readPair(llvm::StringRef vocabPath, llvm::StringRef mergesPath) {
  auto vocab = readJson(vocabPath);
  if (!vocab)
    return vocab.takeError();
  auto merges = MappedFile::open(mergesPath);
  if (!merges)
    return merges.takeError();
  return readVocabAndMerges(*vocab, vocabPath, llvm::toStringRef(merges->bytes()), mergesPath);
}

llvm::Expected<TokenizerBuilder> readRanks(llvm::StringRef path, llvm::StringRef configPath) {
  std::optional<llvm::json::Value> config;
  if (llvm::sys::fs::exists(configPath)) {
    auto root = readJson(configPath);
    if (!root)
      return root.takeError();
    config = std::move(*root);
  }
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return readRankFile(llvm::toStringRef(file->bytes()), path, config ? &*config : nullptr);
}

/// The rank file in `folder`; of several, the one with a known name. Empty: none.
llvm::Expected<std::string> rankFileIn(llvm::StringRef folder) {
  std::vector<std::string> found, known;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (llvm::StringRef(entry->path()).ends_with(".tiktoken"))
      (isKnownRankFile(entry->path()) ? known : found).push_back(entry->path());
  if (error)
    return inputError(folder, "its files cannot be listed: " + error.message(),
                      "make it a folder that can be read");
  std::vector<std::string> &files = known.empty() ? found : known;
  if (files.empty())
    return std::string();
  llvm::sort(files);
  if (files.size() > 1)
    return inputError(folder,
                      "has the rank files " + inQuotes(llvm::sys::path::filename(files[0])) +
                          " and " + inQuotes(llvm::sys::path::filename(files[1])),
                      "keep only the one that the model uses");
  return files[0];
}

llvm::Error applyConfig(llvm::StringRef path, TokenizerSource source, TokenizerBuilder &builder) {
  if (!llvm::sys::fs::exists(path))
    return applyTokenizerConfig(nullptr, path, source, builder);
  auto root = readJson(path);
  return root ? applyTokenizerConfig(&*root, path, source, builder) : root.takeError();
}

/// Anything that the runtime would reject and no reader has reported is an error now. The runtime's
/// own hint is for users of the program, not of the model.
llvm::Error check(const TokenizerTable &table, llvm::StringRef path) {
  std::vector<std::byte> bytes = table.serialize();
  auto opened = rt::Tokenizer::load(bytes);
  if (opened)
    return llvm::Error::success();
  llvm::StringRef why = llvm::StringRef(opened.error().message).split("; ").first;
  return inputError(path, "a tokenizer that cannot be used: " + why, hints::fetch);
}

llvm::Expected<std::optional<TokenizerTable>> readGguf(llvm::StringRef path) {
  auto model = GgufModel::open(path);
  if (!model)
    return model.takeError();
  auto builder = readGgufTokenizer(*model);
  if (!builder)
    return builder.takeError();
  if (!*builder)
    return std::nullopt;
  if (auto error = check((*builder)->table, path))
    return std::move(error);
  return std::move((*builder)->table);
}

} // namespace

llvm::Expected<std::optional<TokenizerTable>> readTokenizer(llvm::StringRef folder) {
  if (isGguf(folder))
    return readGguf(folder);
  std::string json = in(folder, "tokenizer.json"), model = in(folder, "tokenizer.model");
  std::string vocab = in(folder, "vocab.json"), merges = in(folder, "merges.txt");
  using llvm::sys::fs::exists;
  std::string config = in(folder, "tokenizer_config.json");
  auto finish = [&](llvm::Expected<TokenizerBuilder> builder, llvm::StringRef path,
                    TokenizerSource source) -> llvm::Expected<std::optional<TokenizerTable>> {
    if (!builder)
      return builder.takeError();
    if (auto error = applyConfig(config, source, *builder))
      return std::move(error);
    if (auto error = check(builder->table, path))
      return std::move(error);
    return std::move(builder->table);
  };
  if (exists(json))
    return finish(readJsonTokenizer(json), json, TokenizerSource::TokenizerJson);
  if (exists(model))
    return finish(readPieces(model), model, TokenizerSource::SentencePiece);
  if (exists(vocab) && exists(merges))
    return finish(readPair(vocab, merges), vocab, TokenizerSource::VocabAndMerges);
  llvm::Expected<std::string> ranks = rankFileIn(folder);
  if (!ranks)
    return ranks.takeError();
  if (!ranks->empty())
    return finish(readRanks(*ranks, config), *ranks, TokenizerSource::Ranks);
  return std::nullopt;
}

std::string reasonForNoTokenizer(llvm::StringRef model) {
  if (isGguf(model))
    return "has no tokenizer (the key \"tokenizer.ggml.model\" is missing or \"none\")";
  return "has no tokenizer (tokenizer.json, tokenizer.model, vocab.json with merges.txt or a "
         "*.tiktoken file)";
}

} // namespace mica
