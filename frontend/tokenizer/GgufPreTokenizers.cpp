#include "frontend/tokenizer/GgufPreTokenizers.h"

#include "frontend/tokenizer/JsonComponents.h"
#include "frontend/tokenizer/RegexTranslation.h"
#include "frontend/tokenizer/UnicodeTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

using llvm::StringLiteral;

constexpr StringLiteral gpt2[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr StringLiteral digitsAndGpt2[] = {R"(\p{N})", gpt2[0]};
constexpr StringLiteral qwen2[] = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                   R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr StringLiteral llama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr StringLiteral tekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr StringLiteral gpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr GgufPreTokenizer preTokenizers[] = {
    {"codeshell", digitsAndGpt2},
    {.name = "deepseek-r1-qwen", .patterns = qwen2, .composes = true},
    {"gpt-2", gpt2},
    {"gpt-4o", gpt4o},
    {.name = "llama-bpe", .patterns = llama3, .takesPieces = true, .beginsPrompt = true},
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
