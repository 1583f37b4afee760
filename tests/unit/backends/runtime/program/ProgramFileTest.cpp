#include "tests/unit/backends/runtime/program/TestPrograms.h"

#include <elf.h>
#include <functional>
#include <gmock/gmock.h>
#include <utility>

using namespace mica;
using namespace mica::program;
using namespace mica::test;
using testing::HasSubstr;

namespace {
/// A program's bytes with access to header and footer; `seal` updates the checksums after a change.
struct Image {
  std::string bytes;
  Header header;
  Footer footer;
  uint64_t headerOffset;

  explicit Image(std::string given) : bytes(std::move(given)) {
    std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
    headerOffset = footer.headerOffset;
    std::memcpy(&header, bytes.data() + headerOffset, sizeof header);
  }

  SectionEntry &entry(SectionKind kind) {
    for (SectionEntry &entry : header.sections)
      if (entry.kind == static_cast<uint32_t>(kind))
        return entry;
    std::abort();
  }

  void store() {
    std::memcpy(bytes.data() + headerOffset, &header, sizeof header);
    std::memcpy(bytes.data() + bytes.size() - sizeof footer, &footer, sizeof footer);
  }
  void seal() {
    header.hash = hashOf(header);
    footer.hash = hashOf(footer);
    store();
  }
};

class ProgramFileTest : public testing::Test {
protected:
  void SetUp() override { writeTestProgram(path); }

  /// The error of reading the layout after `damage`, which may seal or store its changes.
  std::string errorAfter(const std::function<void(Image &)> &damage) {
    Image image(contents(path));
    damage(image);
    return errorOf(image.bytes);
  }
  static std::string errorOf(const std::string &bytes) {
    rt::Result<Layout> layout = readLayout(rt::MemorySource(bytesOf(bytes)));
    return layout ? "no error" : layout.error().message;
  }

  TestFolder folder;
  std::string path = folder.file("program");
};

TEST_F(ProgramFileTest, RoundTrip) {
  auto file = ProgramFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->layout().sections.size(), 5u);
  for (auto [kind, expected] :
       {std::pair(SectionKind::Code, testCode), std::pair(SectionKind::Tokenizer, testTokens),
        std::pair(SectionKind::Manifest, testManifest)}) {
    auto read = file->read(kind);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(read->data()), read->size()), expected);
  }
  auto weights = file->map(SectionKind::Weights);
  ASSERT_TRUE(weights);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights->bytes().data()) % pageSize, 0u);
  EXPECT_EQ(
      std::string(reinterpret_cast<const char *>(weights->bytes().data()), weights->bytes().size()),
      testWeights);
  uint64_t reported = 0;
  EXPECT_TRUE(verifySection(file->source(), *file->layout().find(SectionKind::Weights),
                            [&](uint64_t done) { reported = done; }));
  EXPECT_EQ(reported, testWeights.size());
}

/// The field of the program header with the offset of the path of the ELF interpreter.
uint64_t &interpreterPlace(std::string &program) {
  auto *elf = reinterpret_cast<Elf64_Ehdr *>(program.data());
  auto *segments = reinterpret_cast<Elf64_Phdr *>(program.data() + elf->e_phoff);
  for (Elf64_Phdr &segment : std::span(segments, elf->e_phnum))
    if (segment.p_type == PT_INTERP)
      return segment.p_offset;
  std::abort();
}

TEST_F(ProgramFileTest, LauncherIsUnchangedExceptForTheInterpreterOffset) {
  auto file = ProgramFile::open(path);
  ASSERT_TRUE(file);
  std::string program = contents(path), launcher = contents("/proc/self/exe");
  uint64_t header = alignToPage(launcher.size());
  EXPECT_EQ(file->layout().headerOffset, header);
  uint64_t was = std::exchange(interpreterPlace(launcher), header + interpreterOffset);
  // Not EXPECT_EQ, which aligns the lines of different texts, with quadratic memory.
  EXPECT_TRUE(std::string_view(program).starts_with(launcher));
  EXPECT_STREQ(program.c_str() + header + interpreterOffset, launcher.c_str() + was);
}

TEST_F(ProgramFileTest, TokenizerMayBeAbsent) {
  writeTestProgram(path, false);
  auto file = ProgramFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->layout().find(SectionKind::Tokenizer), nullptr);
  auto read = file->read(SectionKind::Tokenizer);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->empty());
  auto mapped = file->map(SectionKind::Tokenizer);
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST_F(ProgramFileTest, EveryTruncationIsRefused) {
  std::string bytes = contents(path);
  uint64_t headerEnd = Image(bytes).headerOffset + pageSize;
  for (uint64_t size :
       {uint64_t(0), uint64_t(1), uint64_t(31), uint64_t(32), uint64_t(64), headerEnd - pageSize})
    EXPECT_THAT(errorOf(bytes.substr(0, size)),
                HasSubstr("is not a Mica program, or a truncated one"));
  for (uint64_t size :
       {headerEnd, headerEnd + 1, bytes.size() - 4096, bytes.size() - 32, bytes.size() - 1})
    EXPECT_EQ(errorOf(bytes.substr(0, size)),
              "the program is truncated (" + std::to_string(size) + " bytes instead of " +
                  std::to_string(bytes.size()) + "); copy or compile it again");
}

TEST_F(ProgramFileTest, ForeignFilesAreRefused) {
  EXPECT_THAT(errorOf(contents("/proc/self/exe")),
              HasSubstr("is not a Mica program, or a truncated one"));
  EXPECT_THAT(errorOf(std::string(100000, 'x')),
              HasSubstr("is not a Mica program, or a truncated one"));
  EXPECT_THAT(errorOf(""), HasSubstr("is not a Mica program, or a truncated one"));
}

TEST_F(ProgramFileTest, AppendedBytesHideTheFooter) {
  std::string bytes = contents(path), size = std::to_string(bytes.size());
  EXPECT_EQ(errorOf(bytes + "surplus"),
            "the program is too long (" + std::to_string(bytes.size() + 7) + " bytes instead of " +
                size + "); copy or compile it again");
  bytes.back() ^= 1;
  EXPECT_EQ(errorOf(bytes),
            "the program is damaged: its last bytes are not a footer; copy or compile it again");
}

TEST_F(ProgramFileTest, DamagedFooter) {
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.headerOffset ^= 4096, i.store(); }),
              HasSubstr("its footer does not match its checksum"));
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.headerOffset = ~uint64_t(4095), i.seal(); }),
              HasSubstr("its footer points outside the file"));
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.headerOffset += 1, i.seal(); }),
              HasSubstr("its footer points outside the file"));
  EXPECT_THAT(errorAfter([](Image &i) {
                i.footer.headerOffset = alignToPage(i.bytes.size()) - pageSize, i.seal();
              }),
              HasSubstr("the file ends too early"));
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.headerOffset = 0, i.seal(); }),
              HasSubstr("there is no header where its footer points"));
}

TEST_F(ProgramFileTest, OtherVersionsAreRefused) {
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.version = 5, i.seal(); }),
              HasSubstr("the program has format version 5, this build reads version 6 (since "
                        "version 6 the manifest counts tensors by type); compile it again"));
  // For older versions, the message names the first change after the program's version.
  EXPECT_THAT(errorAfter([](Image &i) { i.footer.version = 2, i.seal(); }),
              HasSubstr("the program has format version 2, this build reads version 6 (since "
                        "version 3 weights are stored as !mica.block); compile it again"));
  EXPECT_THAT(
      errorAfter([](Image &i) { i.footer.version = 7, i.seal(); }),
      HasSubstr("the program has format version 7, this build reads version 6; compile it again"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.version = 0, i.seal(); }),
              HasSubstr("format version 0"));
}

TEST_F(ProgramFileTest, DamagedHeader) {
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sections[0].size += 1, i.store(); }),
              HasSubstr("its header does not match its checksum"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.fileSize -= 1, i.seal(); }),
              HasSubstr("its header says"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = 17, i.seal(); }),
              HasSubstr("counts 17 sections"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = ~0u, i.seal(); }),
              HasSubstr("4294967295 sections"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = 0, i.seal(); }),
              HasSubstr("'launcher' is missing"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = 1, i.seal(); }),
              HasSubstr("'code' is missing"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = 2, i.seal(); }),
              HasSubstr("'weights' is missing"));
  EXPECT_THAT(errorAfter([](Image &i) { i.header.sectionCount = 4, i.seal(); }),
              HasSubstr("'manifest' is missing"));
}

TEST_F(ProgramFileTest, DamagedSections) {
  auto after = [&](SectionKind kind, std::function<void(SectionEntry &)> change) {
    return errorAfter([&](Image &i) { change(i.entry(kind)), i.seal(); });
  };
  EXPECT_THAT(after(SectionKind::Code, [](auto &e) { e.kind = 9; }), HasSubstr("unknown kind 9"));
  EXPECT_THAT(after(SectionKind::Weights, [](auto &e) { e.kind = 1; }),
              HasSubstr("'code' occurs twice"));
  EXPECT_THAT(after(SectionKind::Weights, [](auto &e) { e.offset += 64; }),
              HasSubstr("'weights' is misplaced"));
  EXPECT_THAT(after(SectionKind::Weights, [](auto &e) { e.offset -= pageSize; }),
              HasSubstr("'weights' is misplaced"));
  EXPECT_THAT(after(SectionKind::Code, [](auto &e) { e.offset = 0; }),
              HasSubstr("'code' is misplaced"));
  EXPECT_THAT(after(SectionKind::Launcher, [](auto &e) { e.offset = pageSize; }),
              HasSubstr("'launcher' is misplaced"));
  EXPECT_THAT(after(SectionKind::Launcher, [](auto &e) { e.size += pageSize; }),
              HasSubstr("'launcher' is misplaced"));
  EXPECT_THAT(after(SectionKind::Launcher, [](auto &e) { e.kind = 1; }),
              HasSubstr("'code' is misplaced"));
  EXPECT_THAT(after(SectionKind::Weights, [](auto &e) { e.size += 4 * pageSize; }),
              HasSubstr("'weights' reaches past the end of the file"));
  EXPECT_THAT(after(SectionKind::Weights, [](auto &e) { e.size = pageSize + 10000; }),
              HasSubstr("'tokenizer' is misplaced"));
  EXPECT_THAT(after(SectionKind::Manifest, [](auto &e) { e.size = ~uint64_t(0); }),
              HasSubstr("'manifest' reaches past the end of the file"));
  EXPECT_THAT(after(SectionKind::Manifest, [](auto &e) { e.offset = ~uint64_t(4095); }),
              HasSubstr("'manifest' reaches past the end of the file"));
}

TEST_F(ProgramFileTest, DamagedContentsAreFoundByTheirHash) {
  for (SectionKind kind : {SectionKind::Launcher, SectionKind::Code, SectionKind::Tokenizer,
                           SectionKind::Manifest, SectionKind::Weights}) {
    Image image(contents(path));
    image.bytes[image.entry(kind).offset + image.entry(kind).size - 1] ^= 1;
    rt::MemorySource source(bytesOf(image.bytes));
    auto layout = readLayout(source);
    ASSERT_TRUE(layout) << layout.error().message;
    std::string expected = "its section '" + std::string(sectionName(static_cast<uint32_t>(kind))) +
                           "' does not match its checksum";
    auto read = readSection(source, *layout->find(kind));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr(expected));
    rt::Status verified = verifySection(source, *layout->find(kind));
    ASSERT_FALSE(verified);
    EXPECT_THAT(verified.error().message, HasSubstr(expected));
  }
}

TEST_F(ProgramFileTest, AbsurdSizesAreRefusedBeforeTheyAreAllocated) {
  /// A sparse file of almost a petabyte, with data only at its ends.
  struct Sparse : rt::ByteSource {
    Header header{headerMagic, formatVersion, 1, uint64_t(1) << 49, 0, {}};
    Footer footer{0, formatVersion, 0, 0, footerMagic};
    Sparse() {
      header.sections[0] = {static_cast<uint32_t>(SectionKind::Code), 0, pageSize,
                            uint64_t(1) << 48, 0};
      header.hash = hashOf(header);
      footer.hash = hashOf(footer);
    }
    uint64_t size() const override { return header.fileSize; }
    rt::Status readAt(uint64_t offset, std::span<std::byte> out) const override {
      std::memcpy(out.data(), offset == 0 ? static_cast<const void *>(&header) : &footer,
                  out.size());
      return {};
    }
  } source;
  auto layout = readLayout(source);
  ASSERT_FALSE(layout);
  EXPECT_THAT(layout.error().message, HasSubstr("'code' has the invalid size 281474976710656"));
  EXPECT_FALSE(readSection(source, {SectionKind::Weights, pageSize, uint64_t(1) << 48, 0}));
}

TEST_F(ProgramFileTest, NonFilesAreRefused) {
  auto errorOfOpen = [](const std::string &name) {
    return ProgramFile::open(name).error().message;
  };
  EXPECT_THAT(errorOfOpen(folder.file("absent")), HasSubstr("No such file"));
  EXPECT_THAT(errorOfOpen(folder.file("")), HasSubstr("is a directory"));
  EXPECT_THAT(errorOfOpen("/dev/null"), HasSubstr("is not a regular file"));
}
} // namespace
