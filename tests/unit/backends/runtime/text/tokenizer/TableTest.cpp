// Invalid tables that no compiler writes: loading reports an error, or the tokenizer is safe to
// use.
#include "backends/runtime/text/tokenizer/TableFormat.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

namespace mica::rt::tokenizer {
namespace {

/// Writes a table field by field; by default a small valid one: a, b and ab, merged by rank.
struct TableText {
  uint64_t magic = tableMagic;
  uint32_t version = tableVersion;
  uint8_t kind = 1;
  uint32_t flags = 0;
  int32_t unknown = -1, firstByteId = -1;
  std::vector<uint32_t> ends{1, 2, 4};
  std::string bytes = "abab";
  std::vector<uint8_t> pieceFlags{0, 0, 0};
  std::vector<float> scores;
  std::vector<double> exactScores;
  std::vector<uint32_t> merges{0, 1, 2};
  std::string normalizer = std::string(4, '\0'), preTokenizer = std::string(4, '\0');
  int32_t addedId = 2;
  std::string addedContent = "<end>";
  uint8_t addedFlags = 1;
  std::vector<int32_t> prefix, suffix;
  uint8_t decoderStart = 0;
  uint32_t decoderSteps = 0;
  std::string rest; // after the end

  std::vector<std::byte> write() const {
    out.clear();
    number(magic), number(version), number(uint32_t(0));
    number(kind), number(flags), number(unknown), number(firstByteId);
    for (int i = 1; i < 256; ++i)
      number(int32_t(-1));
    list(ends, 1), text(bytes), list(pieceFlags, 1), listScores(), list(merges, 3);
    out += normalizer;
    out += preTokenizer;
    number(uint32_t(1)), number(addedId), number(addedFlags), text(addedContent);
    list(prefix, 1), list(suffix, 1);
    number(decoderStart), number(uint32_t(0)), text(""), text(""), number(decoderSteps);
    out += rest;
    auto size = static_cast<uint32_t>(out.size());
    std::memcpy(out.data() + 12, &size, 4);
    auto *first = reinterpret_cast<const std::byte *>(out.data());
    return {first, first + out.size()};
  }

private:
  template <typename T> void number(T value) const {
    out.append(reinterpret_cast<const char *>(&value), sizeof(T));
  }
  void text(const std::string &value) const {
    number(static_cast<uint32_t>(value.size()));
    out += value;
  }
  template <typename T> void list(const std::vector<T> &values, size_t each) const {
    number(static_cast<uint32_t>(values.size() / each));
    for (T value : values)
      number(value);
  }
  void listScores() const { exactScores.empty() ? list(scores, 1) : list(exactScores, 1); }
  mutable std::string out;
};

/// A list of one element with these bytes.
std::string one(std::string element) { return std::string("\1\0\0\0", 4) + element; }
/// A string of the format.
std::string text(const std::string &value) {
  uint32_t size = static_cast<uint32_t>(value.size());
  return std::string(reinterpret_cast<const char *>(&size), 4) + value;
}

std::string errorOf(const TableText &table) {
  std::vector<std::byte> bytes = table.write();
  auto tokenizer = Tokenizer::load(bytes);
  return tokenizer ? "accepted" : tokenizer.error().message;
}

TEST(TokenizerTable, AcceptsASmallTable) {
  std::vector<std::byte> bytes = TableText().write();
  auto tokenizer = Tokenizer::load(bytes);
  ASSERT_TRUE(static_cast<bool>(tokenizer)) << tokenizer.error().message;
  // Piece 2 is a special token, which merges of text never produce.
  EXPECT_THAT(*tokenizer->encode("abba<end>", true), testing::ElementsAre(0, 1, 1, 0, 2));
  TableText plain;
  plain.addedFlags = 0;
  bytes = plain.write();
  tokenizer = Tokenizer::load(bytes);
  ASSERT_TRUE(static_cast<bool>(tokenizer)) << tokenizer.error().message;
  EXPECT_THAT(*tokenizer->encode("abba<end>", true), testing::ElementsAre(2, 1, 0, 2));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{0, 1, 7, -1, 0}), "aba");
  EXPECT_TRUE(tokenizer->isSpecial(3));
}

TEST(TokenizerTable, WrongFieldsAreNamed) {
  auto expect = [](const char *what, auto change) {
    TableText table;
    change(table);
    EXPECT_THAT(errorOf(table), testing::HasSubstr(what));
  };
  expect("not a tokenizer table", [](TableText &t) { t.magic = 1; });
  expect("a tokenizer table of another version", [](TableText &t) { t.version = 99; });
  expect("unknown model kind", [](TableText &t) { t.kind = 9; });
  expect("unknown model flags", [](TableText &t) { t.flags = 1u << 30; });
  expect("an id out of range in the model", [](TableText &t) { t.unknown = 3; });
  expect("an id out of range in the byte ids", [](TableText &t) { t.firstByteId = 77; });
  expect("pieces out of order", [](TableText &t) { t.ends = {2, 1, 4}; });
  expect("pieces that disagree with their bytes", [](TableText &t) { t.bytes = "abababab"; });
  expect("disagree with their bytes", [](TableText &t) { t.pieceFlags = {0}; });
  expect("unknown piece flags", [](TableText &t) { t.pieceFlags[1] = 255; });
  expect("scores that disagree with the pieces", [](TableText &t) { t.kind = 2; });
  expect("scores that disagree", [](TableText &t) { t.kind = 4, t.scores = {0, 1}; });
  expect("a score that is not finite",
         [](TableText &t) { t.kind = 4, t.exactScores = {0, INFINITY, 0}; });
  expect("not finite", [](TableText &t) { t.kind = 3, t.scores = {0, NAN, 0}; });
  expect("an id out of range in the merges", [](TableText &t) { t.merges[2] = 3; });
  expect("an id out of range in the added tokens", [](TableText &t) { t.addedId = 3; });
  expect("a broken added token", [](TableText &t) { t.addedContent = ""; });
  expect("a broken added token", [](TableText &t) { t.addedFlags = 255; });
  expect("invalid UTF-8 in added tokens", [](TableText &t) { t.addedContent = "\xFF"; });
  expect("an id out of range in the prompt", [](TableText &t) { t.prefix = {-1}; });
  expect("an id out of range in the prompt", [](TableText &t) { t.suffix = {3}; });
  expect("unknown decoder", [](TableText &t) { t.decoderStart = 9; });
  expect("too many pieces", [](TableText &t) { t.ends.assign((1u << 22) + 1, 0); });
  expect("added tokens too long", [](TableText &t) { t.addedContent = std::string(70000, 'a'); });
  expect("an empty pattern in the decoder",
         [](TableText &t) { t.decoderSteps = 1, t.rest = text("") + text("x"); });
  expect("a decoder that strips nothing", [](TableText &t) { t.decoderStart = 1; });
  expect("bytes after its end", [](TableText &t) { t.rest = "x"; });
}

TEST(TokenizerTable, WrongStepsAreNamed) {
  auto normalizer = [](std::string step) {
    TableText table;
    table.normalizer = one(std::move(step));
    return errorOf(table);
  };
  EXPECT_THAT(normalizer("\x09"), testing::HasSubstr("unknown normalizer"));
  EXPECT_THAT(normalizer("\x02" + text("") + text("x")),
              testing::HasSubstr("an empty pattern in the normalizer"));
  EXPECT_THAT(normalizer("\x02" + text("a") + text(std::string(5000, 'a'))),
              testing::HasSubstr("replacements that let the text grow without bound"));
  EXPECT_THAT(normalizer("\x04\x07" + text("abc") + text("")),
              testing::HasSubstr("a broken character map in the normalizer"));
  EXPECT_THAT(normalizer("\x04\xFF" + text("") + text("")),
              testing::HasSubstr("a broken sentencepiece normalizer"));
  std::string none(4, '\0'), map = "\x08" + text("") + text("a" + std::string(1, '\0'));
  EXPECT_THAT(normalizer("\x03" + none.substr(0, 1) + one("abcd") + none + none),
              testing::HasSubstr("broken Unicode tables"));
  EXPECT_EQ(normalizer(map), "accepted");
  EXPECT_THAT(normalizer("\x08" + text("") + text(std::string(300, 'a') + none)),
              testing::HasSubstr("normalizer replacement too long"));
  TableText twice;
  twice.normalizer = one(map) + map;
  twice.normalizer[0] = 2;
  EXPECT_THAT(errorOf(twice), testing::HasSubstr("a normalizer that repeats itself"));
  EXPECT_THAT(normalizer("\x05" + one("abcd")), testing::HasSubstr("a broken decomposition"));
  EXPECT_THAT(normalizer("\x06\x02\x01"), testing::HasSubstr("unknown normalizer"));
  EXPECT_EQ(normalizer(std::string("\x06\x01\0", 3)), "accepted");
  EXPECT_THAT(normalizer("\x07" + text("(") + text("x")),
              testing::HasSubstr("a pattern in the normalizer that PCRE2 rejects"));
  EXPECT_EQ(normalizer("\x07" + text("a*") + text("x")), "accepted");
  auto preTokenizer = [](std::string step) {
    TableText table;
    table.preTokenizer = one(std::move(step));
    return errorOf(table);
  };
  EXPECT_THAT(preTokenizer("\x09"), testing::HasSubstr("unknown pre-tokenizer"));
  EXPECT_THAT(preTokenizer(std::string("\x03\0\0", 3) + text("")),
              testing::HasSubstr("a Metaspace replacement that is not one character"));
  EXPECT_THAT(preTokenizer(std::string("\x01\x01\0", 3) + text("(")),
              testing::HasSubstr("PCRE2 rejects"));
  EXPECT_EQ(preTokenizer(std::string("\x01\x01\0", 3) + text("a*")), "accepted");
}

TEST(TokenizerTable, EveryTruncationIsRefused) {
  std::vector<std::byte> bytes = TableText().write();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(static_cast<bool>(Tokenizer::load(std::span(bytes).first(size)))) << size;
  EXPECT_THAT(Tokenizer::load(std::span(bytes).first(3)).error().message,
              testing::HasSubstr("truncated at header"));
  EXPECT_THAT(Tokenizer::load(std::span(bytes).first(bytes.size() - 1)).error().message,
              testing::HasSubstr("its size differs from what its header says"));
}

TEST(TokenizerTable, EveryChangedByteIsRejectedOrIgnored) {
  std::vector<std::byte> bytes = TableText().write();
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (uint8_t bit : {0x01, 0x10, 0x80}) {
      std::vector<std::byte> changed = bytes;
      changed[at] ^= std::byte(bit);
      auto tokenizer = Tokenizer::load(changed);
      if (!tokenizer) {
        ++refused;
        continue;
      }
      auto ids = tokenizer->encode("abab <end> \xC3\xA9", true);
      ASSERT_TRUE(ids) << ids.error().message;
      for (int32_t id : *ids)
        EXPECT_TRUE(id >= 0 && id < tokenizer->size()) << "byte " << at;
    }
  EXPECT_GT(refused, bytes.size());
}

} // namespace
} // namespace mica::rt::tokenizer
