#include "frontend/text/tokenizer/PostProcessorReader.h"

#include "frontend/support/InputError.h"

namespace mica {

using namespace rt::tokenizer;

namespace {

/// Appends the ids that `special_tokens` gives for the template's token `name`.
void appendSpecial(const JsonNode &node, llvm::StringRef name, const TokenizerTable &table,
                   std::vector<int32_t> &ids) {
  JsonNode token = node["special_tokens"][name];
  if (token.absent())
    return token.refuse("the template names a token that is not listed",
                        "add it to special_tokens");
  JsonNode list = token["ids"];
  for (size_t i = 0; i < list.array().size(); ++i)
    ids.push_back(
        static_cast<int32_t>(list.at(i).integer(0, static_cast<int64_t>(table.pieces.size()) - 1)));
  if (ids.size() > maxSteps)
    list.refuse("too many ids");
}

void readTemplate(const JsonNode &node, TokenizerTable &table) {
  node.allowKeys({"type", "single", "pair", "special_tokens"});
  JsonNode items = node["single"];
  bool textSeen = false;
  for (size_t i = 0; i < items.array().size(); ++i) {
    JsonNode item = items.at(i);
    item.allowKeys({"SpecialToken", "Sequence"});
    if (!item["SpecialToken"].absent()) {
      appendSpecial(node, item["SpecialToken"]["id"].string(), table,
                    textSeen ? table.suffixIds : table.prefixIds);
      continue;
    }
    if (textSeen || item["Sequence"]["id"].string() != "A")
      item.refuse("a template for one text has exactly one sequence, A");
    textSeen = true;
  }
  if (!textSeen)
    items.refuse("the template leaves the text out");
}

} // namespace

void readPostProcessor(const JsonNode &node, TokenizerTable &table) {
  if (node.absent())
    return;
  std::string type = node["type"].string();
  if (type == "Sequence") {
    node.allowKeys({"type", "processors"});
    JsonNode steps = node["processors"];
    for (size_t i = 0; i < steps.array().size(); ++i)
      readPostProcessor(steps.at(i), table);
  } else if (type == "TemplateProcessing") {
    readTemplate(node, table);
  } else if (type != "ByteLevel") { // ByteLevel only moves offsets
    node.refuseType(type, "post-processor");
  }
}

} // namespace mica
