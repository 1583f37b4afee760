// Model folders for a test, and tokenizers opened from them.
#ifndef MICA_TESTS_UNIT_FRONTEND_TEXT_TOKENIZER_TOKENIZERFIXTURE_H
#define MICA_TESTS_UNIT_FRONTEND_TEXT_TOKENIZER_TOKENIZERFIXTURE_H

#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "frontend/text/tokenizer/ReadTokenizer.h"

#include <filesystem>
#include <string>
#include <vector>

namespace mica::test {

/// A temporary folder that is removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  void write(const std::string &name, const std::string &content) const;
  /// Puts a link to `target` there.
  void link(const std::string &name, const std::filesystem::path &target) const;
  std::string path() const { return folder.string(); }

private:
  std::filesystem::path folder;
};

/// A tokenizer with the bytes that it refers to.
struct OpenTokenizer {
  std::vector<std::byte> bytes;
  rt::Tokenizer tokenizer;
};

/// Reads `folder`, which has a tokenizer, and opens its table at run time, with the literals of a
/// chat template.
llvm::Expected<OpenTokenizer> openFolder(const std::string &folder,
                                         const std::vector<std::string> &templateLiterals = {});

/// A rank file with as many ranks as the published one of that name: those of `ranks` and then some
/// that no text contains.
std::string publishedRanks(const std::string &name, std::string ranks);
/// That number of ranks.
size_t publishedRankCount(const std::string &name);

std::string readText(const std::filesystem::path &path);
/// tests/data/tokenizers, and the optional data beside the tree.
std::filesystem::path tokenizerData();
std::filesystem::path sharedData();

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_TEXT_TOKENIZER_TOKENIZERFIXTURE_H
