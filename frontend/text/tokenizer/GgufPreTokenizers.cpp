#include "frontend/text/tokenizer/GgufPreTokenizers.h"

#include "frontend/text/tokenizer/PreTokenizerReader.h"
#include "frontend/text/tokenizer/RegexTranslation.h"
#include "frontend/text/tokenizer/SplitPatterns.h"
#include "frontend/text/tokenizer/UnicodeTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

using namespace split_patterns;

constexpr GgufPreTokenizer preTokenizers[] = {
    {"a.x-4.0", gpt2},
    {"bailingmoe", bailing},
    {"bailingmoe2", bailing},
    {"bloom", bloom},
    {"chatglm-bpe", llama3},
    {"codeshell", digitsAndGpt2},
    {.name = "command-r", .patterns = digitsAndGpt2, .composes = true},
    {"dbrx", llama3},
    {"deepseek-coder", deepseekCoder},
    {"deepseek-llm", deepseekLlm},
    {.name = "deepseek-r1-qwen", .patterns = qwen2, .composes = true},
    {"deepseek-v3", deepseekV3},
    {"exaone", digitsAndGpt2},
    {"exaone-moe", exaoneMoe},
    {"exaone4", gpt2},
    {"falcon", falcon},
    {.name = "falcon-h1", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {.name = "falcon3", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"gigachat", gpt2},
    {"glm4", llama3},
    {"gpt-2", gpt2},
    {"gpt-4o", gpt4o},
    {"gpt3-finnish", bloom},
    {"granite-docling", gpt2},
    {"grok-2", qwen2},
    {"hunyuan", qwen2},
    {"hunyuan-dense", deepseekV3},
    {"jais", gpt2},
    {"jais-2", jais2},
    {"joyai-llm", deepseekV3},
    {"kanana2", gpt4o},
    {"laguna", laguna},
    {.name = "lfm2", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"llada-moe", bailing},
    {.name = "llama-bpe", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {.name = "llama-v3", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {.name = "llama3", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"llama4", gpt4o},
    {"megrez", qwen2},
    {"mellum", gpt2},
    {"mellum2", digitsAndGpt2},
    {.name = "midm-2.0", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"minerva-7b", digitsAndGpt2},
    {.name = "minicpm5", .patterns = minicpm5, .takesPieces = true},
    {"minimax-m2", gpt4o},
    {.name = "mpt", .patterns = gpt2, .composes = true},
    {.name = "olmo", .patterns = gpt2, .composes = true},
    {"phi-2", gpt2},
    {.name = "pixtral", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
    {"poro-chat", bloom},
    {.name = "qwen2", .patterns = qwen2, .composes = true},
    {.name = "qwen35", .patterns = qwen35, .composes = true},
    {"refact", digitsAndGpt2},
    {"seed-coder", seedCoder},
    {"smaug-bpe", llama3},
    {"smollm", digitsAndGpt2},
    {"solar-open", qwen2},
    {.name = "stablelm2", .patterns = qwen2, .composes = true},
    {"starcoder", digitsAndGpt2},
    {.name = "tekken", .patterns = tekken, .takesPieces = true, .beginsPrompt = true},
    {"trillion", gpt2},
    {"viking", viking},
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
