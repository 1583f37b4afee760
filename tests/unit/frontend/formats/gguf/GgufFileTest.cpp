#include "frontend/formats/gguf/GgufFile.h"

#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

llvm::Expected<GgufHeader> read(const std::string &bytes) {
  return readGgufHeader({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, "m");
}

std::string problemOf(const GgufWriter &file) { return messageOf(read(file.bytes())); }

/// A key, an array and two tensors.
GgufWriter small() {
  GgufWriter file;
  file.u32("a.count", 7).strings("a.names", {"x", "", "yz"});
  file.floats("one", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensor("two", {2, 32}, std::string(36, '\1'), 2);
  return file;
}

TEST(GgufFile, ReadsKeysAndOffsets) {
  std::string bytes = small().bytes();
  auto header = read(bytes);
  ASSERT_TRUE(bool(header));
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->metadata.lookup("a.count").integer(), 7);
  EXPECT_THAT(*header->metadata.lookup("a.names").strings(), testing::ElementsAre("x", "", "yz"));
  ASSERT_EQ(header->tensors.size(), 2u);
  const GgufTensor &one = header->tensors[0], &two = header->tensors[1];
  EXPECT_EQ(one.name, "one");
  EXPECT_THAT(one.shape, testing::ElementsAre(2, 3)) << "the file has the fastest first";
  EXPECT_EQ(one.size, 24u);
  EXPECT_EQ(one.offset % 32, 0u);
  EXPECT_EQ(two.type->name, "Q4_0");
  EXPECT_EQ(two.size, 36u);
  EXPECT_EQ(two.offset + two.size, bytes.size());
}

TEST(GgufFile, ReadsEveryKindOfValue) {
  GgufWriter file;
  file.value("u8", GgufKind::U8, GgufWriter::raw<uint8_t>(200));
  file.value("i8", GgufKind::I8, GgufWriter::raw<int8_t>(-3));
  file.value("u16", GgufKind::U16, GgufWriter::raw<uint16_t>(60000));
  file.value("i16", GgufKind::I16, GgufWriter::raw<int16_t>(-300));
  file.value("i32", GgufKind::I32, GgufWriter::raw<int32_t>(-70000));
  file.value("u64", GgufKind::U64, GgufWriter::raw<uint64_t>(1ull << 40));
  file.value("huge", GgufKind::U64, GgufWriter::raw<uint64_t>(~0ull));
  file.value("i64", GgufKind::I64, GgufWriter::raw<int64_t>(-1));
  file.value("f64", GgufKind::F64, GgufWriter::raw<double>(0.1));
  file.f32("eps", 1e-5f).boolean("yes", true).string("text", "a\"b");
  file.list<float>("floats", GgufKind::F32, {1, 2.5});
  file.list<uint16_t>("numbers", GgufKind::U16, {1, 65535});
  std::string inner = GgufWriter::array(GgufKind::U8, 2, "ab");
  file.value("nested", GgufKind::Array, GgufWriter::array(GgufKind::Array, 2, inner + inner));
  std::string bytes = file.bytes();
  auto header = read(bytes);
  ASSERT_TRUE(bool(header)) << messageOf(std::move(header));
  auto at = [&](const char *key) { return header->metadata.lookup(key); };
  EXPECT_EQ(at("u8").integer(), 200);
  EXPECT_EQ(at("i8").integer(), -3);
  EXPECT_EQ(at("u16").integer(), 60000);
  EXPECT_EQ(at("i16").integer(), -300);
  EXPECT_EQ(at("i32").integer(), -70000);
  EXPECT_EQ(at("u64").integer(), int64_t(1) << 40);
  EXPECT_EQ(at("huge").integer(), std::nullopt);
  EXPECT_EQ(at("huge").shown(), "18446744073709551615");
  EXPECT_EQ(at("i64").number(), -1.0);
  EXPECT_EQ(at("f64").number(), 0.1);
  EXPECT_EQ(at("eps").number(), 1e-5) << "the decimal that was meant";
  EXPECT_EQ(at("eps").shown(), "1e-05");
  EXPECT_EQ(at("yes").boolean(), true);
  EXPECT_EQ(at("yes").integer(), std::nullopt);
  EXPECT_EQ(at("text").shown(), "\"a\\22b\"");
  EXPECT_THAT(*at("floats").floats(), testing::ElementsAre(1, 2.5));
  EXPECT_THAT(*at("numbers").integers(), testing::ElementsAre(1, 65535));
  EXPECT_EQ(at("floats").integers(), std::nullopt);
  EXPECT_EQ(at("nested").size(), 2u);
  EXPECT_EQ(at("nested").integers(), std::nullopt);
  EXPECT_EQ(at("nested").shown(), "an array of 2");
}

TEST(GgufFile, IsRefusedCutAtEveryByte) {
  std::string bytes = small().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string message = messageOf(read(bytes.substr(0, size)));
    EXPECT_THAT(message, testing::StartsWith("m: ")) << size;
    EXPECT_THAT(message, testing::EndsWith("; download it again")) << size;
  }
  EXPECT_EQ(messageOf(read(bytes)), "");
}

TEST(GgufFile, NamesThePartThatIsTruncated) {
  std::string bytes = small().bytes();
  EXPECT_EQ(messageOf(read("GGU")), "m: is not a GGUF file; download it again");
  EXPECT_THAT(messageOf(read("GGUF")), HasSubstr("ends in its version (4 bytes), it is truncated"));
  EXPECT_THAT(messageOf(read(bytes.substr(0, 20))), HasSubstr("ends in its header (20 bytes)"));
  EXPECT_THAT(messageOf(read(bytes.substr(0, 30))), HasSubstr("ends in the name of key 0 of 2"));
  EXPECT_THAT(messageOf(read(bytes.substr(0, 41))), HasSubstr("ends in the key \"a.count\""));
  EXPECT_THAT(messageOf(read(bytes.substr(0, 45))),
              HasSubstr("has a value of 4 bytes for the key \"a.count\", but 2 follow"));
  std::string header = small().header();
  EXPECT_THAT(messageOf(read(header.substr(0, header.size() - 1))),
              HasSubstr("ends in the entry of tensor \"two\""));
}

TEST(GgufFile, RefusesOtherVersions) {
  GgufWriter file = small();
  file.version = 2;
  EXPECT_EQ(problemOf(file), "");
  file.version = 1;
  EXPECT_THAT(problemOf(file),
              HasSubstr("has the GGUF version 1, only 2 and 3 are supported; convert it to one of "
                        "them"));
  file.version = 3u << 24;
  EXPECT_THAT(
      problemOf(file),
      HasSubstr("is a big-endian GGUF file of version 3, only little-endian ones are supported; "
                "convert it to little-endian"));
}

TEST(GgufFile, RefusesAbsurdCounts) {
  GgufWriter file = small();
  file.keys = 1ull << 60;
  EXPECT_THAT(
      problemOf(file),
      HasSubstr("declares 1152921504606846976 keys and 2 tensors, at most 65536 and 1048576 "
                "are supported"));
  file = small();
  file.tensors = 1 << 21;
  EXPECT_THAT(problemOf(file), HasSubstr("at most 65536 and 1048576 are supported"));
  file = small();
  file.keys = 3; // a tensor's entry is read as a key
  EXPECT_NE(problemOf(file), "");
}

TEST(GgufFile, RefusesLengthsBeyondTheFile) {
  GgufWriter file;
  file.value("k", GgufKind::String, GgufWriter::raw<uint64_t>(1ull << 63));
  EXPECT_THAT(problemOf(file),
              HasSubstr("has a value of 9223372036854775808 bytes for the key \"k\""));
  file = GgufWriter();
  file.value("k", GgufKind::Array, GgufWriter::array(GgufKind::F64, 1ull << 61, ""));
  EXPECT_THAT(
      problemOf(file),
      HasSubstr("declares 2305843009213693952 elements for the key \"k\" (byte 37), but 15 bytes "
                "follow"));
  file = GgufWriter();
  file.value("k", GgufKind::Array,
             GgufWriter::array(GgufKind::String, 1, GgufWriter::raw<uint64_t>(~0ull)));
  EXPECT_THAT(problemOf(file), HasSubstr("ends in an array of the key \"k\""));
  file = GgufWriter();
  file.metadata = GgufWriter::raw<uint64_t>(1ull << 63);
  file.keys = 1;
  EXPECT_THAT(problemOf(file), HasSubstr("ends in the name of key 0 of 1"));
}

TEST(GgufFile, RefusesDuplicates) {
  EXPECT_THAT(problemOf(GgufWriter().u32("k", 1).u32("k", 1)),
              HasSubstr("has the key \"k\" twice"));
  EXPECT_THAT(problemOf(GgufWriter().floats("t", {1}, {1}).floats("t", {1}, {1})),
              HasSubstr("has tensor \"t\" twice"));
}

TEST(GgufFile, RefusesUnknownKindsAndNames) {
  EXPECT_THAT(problemOf(GgufWriter().value("k", GgufKind(13), "abcdefgh")),
              HasSubstr("has the kind 13 for the key \"k\" (byte 33), which is unknown"));
  EXPECT_THAT(problemOf(GgufWriter().value("k", GgufKind::Bool, "\2")),
              HasSubstr("has a boolean value of 2 for the key \"k\""));
  EXPECT_THAT(problemOf(GgufWriter().u32("", 1)),
              HasSubstr("has a key whose name has 0 bytes (key 0)"));
  EXPECT_THAT(problemOf(GgufWriter().floats("", {1}, {1})),
              HasSubstr("has a tensor whose name has 0 bytes (tensor 0)"));
  std::string deep = GgufWriter::array(GgufKind::U8, 0, "");
  for (int i = 0; i < 4; ++i)
    deep = GgufWriter::array(GgufKind::Array, 1, deep);
  EXPECT_THAT(problemOf(GgufWriter().value("k", GgufKind::Array, deep)),
              HasSubstr("nests arrays deeper than 4 in the key \"k\""));
}

TEST(GgufFile, RefusesAWrongAlignment) {
  for (uint32_t alignment : {0u, 24u, 1u << 17})
    EXPECT_THAT(problemOf(GgufWriter().u32("general.alignment", alignment)),
                HasSubstr("has \"general.alignment\": " + std::to_string(alignment) +
                          ", expected a power of two up to 65536"));
  EXPECT_THAT(problemOf(GgufWriter().string("general.alignment", "8")),
              HasSubstr("has \"general.alignment\": \"8\""));
  GgufWriter file;
  file.alignment = 8;
  file.u32("general.alignment", 8).floats("a", {1}, {1}).floats("b", {1}, {2});
  EXPECT_EQ(problemOf(file), "");
  file = GgufWriter();
  file.entry("t", {1}, 0, 4).data = std::string(64, '\0');
  EXPECT_THAT(problemOf(file),
              HasSubstr("tensor \"t\" has the offset 4, not a multiple of the alignment 32"));
}

TEST(GgufFile, RefusesWrongShapesAndTypes) {
  auto problem = [](std::vector<uint64_t> extents, uint32_t type, uint64_t offset = 0,
                    size_t dataBytes = 64) {
    GgufWriter file;
    file.entry("t", extents, type, offset).data = std::string(dataBytes, '\0');
    return problemOf(file);
  };
  EXPECT_EQ(problem({4, 4}, 0), "");
  EXPECT_EQ(problem({}, 0, 0, 4), "") << "a scalar";
  EXPECT_EQ(problem({0, 4}, 0, 0, 0), "") << "nothing";
  EXPECT_THAT(problem({1, 1, 1, 1, 1}, 0),
              HasSubstr("tensor \"t\" has 5 dimensions, at most 4 are supported"));
  EXPECT_THAT(problem({1ull << 63}, 0),
              HasSubstr("tensor \"t\" has the invalid dimension 9223372036854775808"));
  EXPECT_THAT(problem({1ull << 40, 1ull << 40}, 0),
              HasSubstr("tensor \"t\" has a size that overflows"));
  EXPECT_THAT(
      problem({33}, 2),
      HasSubstr(
          "tensor \"t\" has rows of 33 elements, not a multiple of the block size Q4_0 (32 each)"));
  EXPECT_THAT(problem({4}, 99),
              HasSubstr("tensor \"t\" has the type 99, which is unknown; convert it to one of "));
  EXPECT_THAT(problem({17}, 0),
              HasSubstr("tensor \"t\" has 68 bytes at offset 0, beyond the end of the file (128 "
                        "bytes), it is truncated or its header is wrong"));
  EXPECT_THAT(problem({4}, 0, 1ull << 63), HasSubstr("beyond the end of the file"));
}

TEST(GgufFile, RefusesTensorsThatOverlap) {
  GgufWriter file;
  file.entry("first", {16}, 0, 0).entry("second", {4}, 0, 32).data = std::string(64, '\0');
  EXPECT_THAT(problemOf(file), HasSubstr("tensor \"second\" overlaps the tensor \"first\""));
}

/// If a tensor's type is changed, it has too many or too few bytes.
TEST(GgufFile, RefusesBytesOfNoTensor) {
  auto problem = [](uint32_t firstType, uint64_t secondOffset, size_t dataBytes) {
    GgufWriter file;
    file.entry("second", {4}, 0, secondOffset).entry("first", {256}, firstType, 0);
    file.data = std::string(dataBytes, '\0');
    return problemOf(file);
  };
  constexpr uint32_t q8 = 8, iq4xs = 23; // 272 and 136 bytes
  EXPECT_EQ(problem(q8, 288, 304), "");
  EXPECT_EQ(problem(q8, 288, 320), "") << "the last tensor may be padded as well";
  EXPECT_THAT(
      problem(iq4xs, 288, 304),
      HasSubstr("has 128 bytes that belong to no tensor between the tensor \"first\" and tensor "
                "\"second\", the type or shape of a tensor does not match its size"));
  EXPECT_THAT(problem(q8, 320, 336),
              HasSubstr("has 32 bytes that belong to no tensor between the tensor "
                        "\"first\" and tensor \"second\""));
  EXPECT_THAT(problem(q8, 288, 352),
              HasSubstr("has 32 bytes that belong to no tensor between the tensor "
                        "\"second\" and the end of the file"));
  GgufWriter late;
  late.entry("only", {4}, 0, 32).data = std::string(48, '\0');
  EXPECT_THAT(
      problemOf(late),
      HasSubstr("has 32 bytes that belong to no tensor between the header and tensor \"only\""));
}

} // namespace
