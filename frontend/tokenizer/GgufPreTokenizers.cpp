#include "frontend/tokenizer/GgufPreTokenizers.h"

#include "frontend/tokenizer/JsonComponents.h"
#include "frontend/tokenizer/RegexTranslation.h"
#include "frontend/tokenizer/SplitPatterns.h"
#include "frontend/tokenizer/UnicodeTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

using namespace split_patterns;

constexpr GgufPreTokenizer preTokenizers[] = {
    {"bloom", bloom},
    {"codeshell", digitsAndGpt2},
    {.name = "command-r", .patterns = digitsAndGpt2, .composes = true},
    {"deepseek-coder", deepseekCoder},
    {.name = "deepseek-r1-qwen", .patterns = qwen2, .composes = true},
    {"deepseek-v3", deepseekV3},
    {"gpt-2", gpt2},
    {"gpt-4o", gpt4o},
    {.name = "llama-bpe", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"llama4", gpt4o},
    {.name = "llama-v3", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {.name = "llama3", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"phi-2", gpt2},
    {.name = "qwen2", .patterns = qwen2, .composes = true},
    {"refact", digitsAndGpt2},
    {"smollm", digitsAndGpt2},
    {"starcoder", digitsAndGpt2},
    {.name = "tekken", .patterns = tekken, .takesPieces = true, .beginsPrompt = true},
};

} // namespace

const GgufPreTokenizer *ggufPreTokenizerNamed(llvm::StringRef name) {
  for (const GgufPreTokenizer &pre : preTokenizers)
    if (pre.name == name)
      return &pre;
  return nullptr;
}

std::string ggufPreTokenizerNames() {
  return llvm::join(
      llvm::map_range(preTokenizers, [](const GgufPreTokenizer &pre) { return pre.name.str(); }),
      ", ");
}

void apply(const GgufPreTokenizer &pre, TokenizerTable &table) {
  if (pre.composes)
    table.normalizer.push_back(unicodeFormStep(UnicodeForm::NFC));
  for (llvm::StringRef pattern : pre.patterns)
    table.preTokenizer.push_back(isolate(llvm::cantFail(translateRegex(pattern))));
  if (pre.takesPieces)
    table.flags |= rt::tokenizer::ModelFlags::ignoreMerges;
}

} // namespace mica
