// Tables of tests/fuzz/corpus/tokenizer-table.
#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "tests/unit/Paths.h"

#include "gtest/gtest.h"

#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>

using namespace mica::rt;

namespace {
std::string readTable(const std::string &name) {
  std::ifstream file(MICA_SOURCE_DIR "/tests/fuzz/corpus/tokenizer-table/" + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i)
    all += text;
  return all;
}
} // namespace

/// Texts that normalization shrinks, and those of one piece after the other, have as many ids as
/// the bound says.
TEST(TokenBound, HoldsForEachText) {
  const std::map<std::string, bool> bounded = {
      {"byte-level", true}, {"llama2", true},  {"nfc", true},      {"metaspace", false},
      {"split", false},     {"sp-bpe", false}, {"unigram", false}, {"sp-unigram", false}};
  for (const auto &[name, hasBound] : bounded) {
    const std::string bytes = readTable(name);
    Result<Tokenizer> tokenizer = Tokenizer::load(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(tokenizer) << name << ": " << tokenizer.error().message;
    std::optional<size_t> bound = tokenizer->maxBytesPerToken();
    EXPECT_EQ(bound.has_value(), hasBound) << name;
    if (!bound)
      continue;
    std::vector<std::string> texts = {
        "a", " ", "\n", "hello world", "\u0001", "\U0001F98A", "\uFDFA",
        // Decomposed: a Hangul syllable, a letter with three marks; the signs Kelvin and Ohm.
        "\u1112\u1161\u11AB", "\u03B1\u0313\u0300\u0345", "\u212A", "\u2126", "\u1FEF"};
    for (int32_t id = 0; id < tokenizer->size(); ++id)
      texts.push_back(tokenizer->bytesOf(id));
    for (const std::string &text : texts) {
      const std::string longer = repeated(text, 20);
      Result<std::vector<int32_t>> ids = tokenizer->encode(longer, false);
      ASSERT_TRUE(ids) << name;
      EXPECT_LE(longer.size(), *bound * ids->size()) << name << " " << text;
    }
  }
}
