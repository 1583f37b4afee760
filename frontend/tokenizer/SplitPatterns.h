//===- SplitPatterns.h - how published tokenizers split text into words
//-------------------------===//
#ifndef MICA_FRONTEND_TOKENIZER_SPLITPATTERNS_H
#define MICA_FRONTEND_TOKENIZER_SPLITPATTERNS_H

#include "llvm/ADT/StringRef.h"

/// Regular expressions of published tokenizers that files name without writing them down, as their
/// tokenizer.json has them. A list is applied one after the other; matches become words.
namespace mica::split_patterns {

using llvm::StringLiteral;

inline constexpr StringLiteral gpt2[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
inline constexpr StringLiteral digitsAndGpt2[] = {R"(\p{N})", gpt2[0]};
inline constexpr StringLiteral qwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
inline constexpr StringLiteral llama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
/// tiktoken's cl100k_base: Llama 3's but for white space at the end of the text, which is one word.
inline constexpr StringLiteral cl100k[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]+|\s+(?!\S)|\s+)"};
inline constexpr StringLiteral tekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
inline constexpr StringLiteral gpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

inline constexpr StringLiteral bloom[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
inline constexpr StringLiteral deepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                  R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};
inline constexpr StringLiteral deepseekV3[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

} // namespace mica::split_patterns

#endif // MICA_FRONTEND_TOKENIZER_SPLITPATTERNS_H
