#include "frontend/text/tokenizer/TokenizerConfig.h"

#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/PreTokenizerReader.h"
#include "frontend/text/tokenizer/UnicodeTables.h"

namespace mica {

using namespace rt::tokenizer;

namespace {

class ConfigReader {
public:
  ConfigReader(const JsonNode &root, TokenizerSource source, TokenizerBuilder &builder)
      : root(root), source(source), builder(builder), table(builder.table) {}

  void read() {
    // "LlamaTokenizerFast" and "LlamaTokenizer" differ in their implementation only.
    std::string name = root["tokenizer_class"].string("");
    llvm::StringRef family = name;
    family.consume_back("Fast");
    if (source == TokenizerSource::VocabAndMerges)
      setClass(family.str());
    readAddedTokens();
    table.bosId = idOf("bos_token", table.bosId);
    table.eosId = idOf("eos_token", table.eosId);
    bool llama = source == TokenizerSource::SentencePiece || family == "LlamaTokenizer" ||
                 family == "CodeLlamaTokenizer";
    placeBos(llama);
    placeEos();
  }

private:
  /// The classes of the older format have their rules as code.
  void setClass(const std::string &family) {
    if (family == "Qwen2Tokenizer") {
      table.normalizer.push_back(unicodeFormStep(UnicodeForm::NFC));
      table.preTokenizer.push_back(isolate(qwen2Pattern()));
    } else if (family.empty() || family == "GPT2Tokenizer") {
      if (root["add_prefix_space"].boolean(false))
        table.preTokenizer.push_back({PreTokenizerKind::PrefixSpace});
      table.preTokenizer.push_back(isolate(gpt2Pattern()));
    } else {
      root["tokenizer_class"].refuse("the class " + inQuotes(family) +
                                         " is not supported with vocab.json and merges.txt",
                                     "add a tokenizer.json");
    }
  }

  void readAddedTokens() {
    JsonNode tokens = root["added_tokens_decoder"];
    std::vector<std::pair<int64_t, llvm::StringRef>> ids;
    if (!tokens.absent())
      for (const auto &entry : tokens.object()) {
        llvm::StringRef key = entry.first;
        int64_t id = 0;
        if (key.getAsInteger(10, id) || id < 0 || id >= maxPieces)
          return tokens[key].refuse("an id is expected as the key");
        ids.emplace_back(id, key);
      }
    llvm::sort(ids);
    for (const auto &[id, key] : ids)
      builder.readAddedToken(tokens[key], id);
    // The named tokens are special even if the vocabulary does not mark them.
    if (source == TokenizerSource::VocabAndMerges) {
      for (llvm::StringRef key : {"bos_token", "eos_token", "unk_token", "pad_token"})
        addNamed(key, root[key].absent() ? "" : spelling(key));
      if (root.absent())
        addNamed("eos_token", "<|endoftext|>");
    }
  }

  void addNamed(llvm::StringRef key, llvm::StringRef content) {
    if (auto id = builder.find(content))
      builder.addToken({*id, AddedTokenFlags::special, content.str()}, root[key]);
  }

  /// Reads a token: a string or an object with `content`.
  std::string spelling(llvm::StringRef key) const {
    JsonNode node = root[key];
    return node.isObject() ? node["content"].string() : node.string();
  }

  std::optional<int32_t> idOf(llvm::StringRef key, std::optional<int32_t> fallback) const {
    if (root[key].absent())
      return fallback;
    auto id = builder.find(spelling(key));
    if (!id)
      root[key].refuse("the vocabulary lacks this token", "use a token of the vocabulary");
    return id;
  }

  /// An explicit add_bos_token has priority; the Llama classes add BOS by default; otherwise, the
  /// template decides.
  void placeBos(bool llama) {
    JsonNode node = root["add_bos_token"];
    if (node.absent() && !llama)
      return;
    bool wanted = node.boolean(true);
    if (wanted && !table.bosId) {
      if (!node.absent())
        node.refuse("there is no bos_token to add", "add one or set this to false");
      return;
    }
    if (!table.bosId)
      return;
    auto &ids = table.prefixIds;
    bool present = llvm::is_contained(ids, *table.bosId);
    if (wanted && !present)
      ids.insert(ids.begin(), *table.bosId);
    else if (!wanted && present)
      llvm::erase(ids, *table.bosId);
  }

  void placeEos() {
    JsonNode node = root["add_eos_token"];
    if (node.absent())
      return;
    bool wanted = node.boolean(false);
    if (wanted && !table.eosId)
      return node.refuse("there is no eos_token to add", "add one or set this to false");
    if (!table.eosId)
      return;
    auto &ids = table.suffixIds;
    bool present = llvm::is_contained(ids, *table.eosId);
    if (wanted && !present)
      ids.push_back(*table.eosId);
    else if (!wanted && present)
      llvm::erase(ids, *table.eosId);
  }

  const JsonNode &root;
  TokenizerSource source;
  TokenizerBuilder &builder;
  TokenizerTable &table;
};

} // namespace

llvm::Error applyTokenizerConfig(const llvm::json::Value *root, llvm::StringRef file,
                                 TokenizerSource source, TokenizerBuilder &builder) {
  Problem problem(file);
  JsonNode node(root, "", problem);
  if (!node.absent() && !node.isObject())
    node.refuse("an object is expected");
  else
    ConfigReader(node, source, builder).read();
  return problem.take();
}

} // namespace mica
