// Small programs for the tests of the file format.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_PROGRAM_TESTPROGRAMS_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_PROGRAM_TESTPROGRAMS_H

#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/program/ProgramWriter.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

namespace mica::test {

inline std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

inline std::string contents(const std::string &path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// A temporary folder that is removed with the object.
class TestFolder {
public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mica-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string file(const std::string &name) const { return (path / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }

private:
  std::filesystem::path path;
};

inline const std::string testCode = "\x7f"
                                    "ELF code",
                         testWeights(10000, 'w'), testManifest = "{}", testTokens = "tokens";

/// A program around the ELF file of the test itself (any ELF will do).
inline void writeTestProgram(const std::string &path, bool tokenizer = true) {
  auto writer = program::ProgramWriter::create(path, "/proc/self/exe");
  ASSERT_TRUE(writer) << writer.error().message;
  using program::SectionKind;
  ASSERT_TRUE((*writer)->add(SectionKind::Code, bytesOf(testCode)));
  ASSERT_TRUE((*writer)->add(SectionKind::Weights, bytesOf(testWeights)));
  if (tokenizer)
    ASSERT_TRUE((*writer)->add(SectionKind::Tokenizer, bytesOf(testTokens)));
  ASSERT_TRUE((*writer)->add(SectionKind::Manifest, bytesOf(testManifest)));
  rt::Status done = (*writer)->commit();
  ASSERT_TRUE(done) << done.error().message;
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_PROGRAM_TESTPROGRAMS_H
