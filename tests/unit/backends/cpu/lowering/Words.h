//===- Words.h - texts with placeholders ------------------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_WORDS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_WORDS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::test {

/// A placeholder's replacement in a text.
struct Word {
  Word(int64_t number) : text(std::to_string(number)) {}
  Word(int number) : Word(int64_t(number)) {}
  Word(const char *text) : text(text) {}
  Word(std::string text) : text(std::move(text)) {}
  std::string text;
};

/// Placeholders and their replacements, in order: replacements may contain later placeholders.
using Words = std::vector<std::pair<std::string, Word>>;

/// `text` with every `{key}` replaced.
std::string fill(std::string text, const Words &words);

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_WORDS_H
