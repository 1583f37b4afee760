#include "TokenizerFixture.h"

#include "tests/unit/Paths.h"

#include "llvm/Support/Base64.h"

#include "gtest/gtest.h"

#include <fstream>
#include <iterator>

namespace mica::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "mica-tokenizer-XXXXXX").string();
  folder = mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

void TemporaryFolder::write(const std::string &name, const std::string &content) const {
  std::ofstream(folder / name, std::ios::binary) << content;
}

void TemporaryFolder::link(const std::string &name, const std::filesystem::path &target) const {
  std::filesystem::create_symlink(std::filesystem::absolute(target), folder / name);
}

llvm::Expected<OpenTokenizer> openFolder(const std::string &folder,
                                         const std::vector<std::string> &templateLiterals) {
  auto table = readTokenizer(folder);
  if (!table)
    return table.takeError();
  if (!*table)
    return llvm::createStringError("no tokenizer in the folder");
  std::vector<std::byte> bytes = (*table)->serialize();
  auto tokenizer = rt::Tokenizer::load(bytes, templateLiterals);
  if (!tokenizer)
    return llvm::createStringError(tokenizer.error().message);
  return OpenTokenizer{std::move(bytes), std::move(*tokenizer)};
}

size_t publishedRankCount(const std::string &name) {
  return name == "o200k_base.tiktoken" ? 199998 : name == "qwen.tiktoken" ? 151643 : 100256;
}

std::string publishedRanks(const std::string &name, std::string ranks) {
  for (size_t rank = llvm::StringRef(ranks).count('\n'); rank < publishedRankCount(name); ++rank) {
    char piece[] = {'\xFF', '\xFE', static_cast<char>(rank), static_cast<char>(rank >> 8),
                    static_cast<char>(rank >> 16)};
    ranks += llvm::encodeBase64(llvm::StringRef(piece, sizeof(piece))) + " " +
             std::to_string(rank) + "\n";
  }
  return ranks;
}

std::string readText(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::filesystem::path tokenizerData() {
  return std::filesystem::path(MICA_TEST_DATA) / "tokenizers";
}
std::filesystem::path sharedData() {
  return std::filesystem::path(MICA_SOURCE_DIR) / ".." / "shared";
}

} // namespace mica::test
