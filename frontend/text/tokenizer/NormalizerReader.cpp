#include "frontend/text/tokenizer/NormalizerReader.h"
#include "frontend/text/tokenizer/SentencePieceModel.h"
#include "frontend/text/tokenizer/UnicodeTables.h"

#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/PreTokenizerReader.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Base64.h"

namespace mica {

using rt::tokenizer::NormalizerKind;

static void readReplace(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "pattern", "content"});
  JsonNode pattern = node["pattern"];
  if (pattern.isObject() && !pattern["Regex"].absent()) {
    TokenizerTable::NormalizerStep step{NormalizerKind::ReplacePattern};
    step.text = readRegex(pattern["Regex"]);
    step.replacement = node["content"].string();
    return table.normalizer.push_back(std::move(step));
  }
  TokenizerTable::NormalizerStep step{NormalizerKind::Replace};
  step.text = pattern["String"].string();
  step.replacement = node["content"].string();
  if (step.text.empty())
    pattern["String"].refuse("an empty pattern");
  table.normalizer.push_back(std::move(step));
}

/// Reads a character map of sentencepiece, in base64.
static void readPrecompiled(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "precompiled_charsmap"});
  JsonNode map = node["precompiled_charsmap"];
  std::string text = map.string();
  std::vector<char> bytes;
  llvm::Error error = llvm::decodeBase64(text, bytes);
  bool broken = static_cast<bool>(error);
  llvm::consumeError(std::move(error));
  TokenizerTable::NormalizerStep step{NormalizerKind::CharsMap};
  if (broken || text.empty() || !setCharsMap({bytes.data(), bytes.size()}, step))
    return map.refuse("not a character map of sentencepiece in base64", hints::fetch);
  table.normalizer.push_back(std::move(step));
}

void readNormalizer(const JsonNode &node, TokenizerTable &table) {
  if (node.absent())
    return;
  // The limit of the runtime: a Unicode form is a table of some 100 KB, and a small file could
  // request thousands.
  if (table.normalizer.size() == rt::tokenizer::maxSteps)
    return node.refuseUnsupported("a sequence of more than 64 normalizers");
  std::string type = node["type"].string();
  auto form = llvm::StringSwitch<std::optional<UnicodeForm>>(type)
                  .Case("NFC", UnicodeForm::NFC)
                  .Case("NFD", UnicodeForm::NFD)
                  .Case("NFKC", UnicodeForm::NFKC)
                  .Case("NFKD", UnicodeForm::NFKD)
                  .Default(std::nullopt);
  if (form) {
    node.allowKeys({"type"});
    table.normalizer.push_back(unicodeFormStep(*form));
  } else if (type == "Sequence") {
    node.allowKeys({"type", "normalizers"});
    JsonNode steps = node["normalizers"];
    for (size_t i = 0; i < steps.array().size(); ++i)
      readNormalizer(steps.at(i), table);
  } else if (type == "Prepend") {
    node.allowKeys({"type", "prepend"});
    TokenizerTable::NormalizerStep step{NormalizerKind::Prepend};
    step.text = node["prepend"].string();
    table.normalizer.push_back(std::move(step));
  } else if (type == "Lowercase") {
    node.allowKeys({"type"});
    table.normalizer.push_back(lowercaseStep());
  } else if (type == "Strip") {
    node.allowKeys({"type", "strip_left", "strip_right"});
    TokenizerTable::NormalizerStep step{NormalizerKind::Strip};
    step.left = node["strip_left"].boolean(true);
    step.right = node["strip_right"].boolean(true);
    table.normalizer.push_back(std::move(step));
  } else if (type == "Replace") {
    readReplace(node, table);
  } else if (type == "Precompiled") {
    readPrecompiled(node, table);
  } else {
    node.refuseType(type, "normalizer");
  }
}

} // namespace mica
