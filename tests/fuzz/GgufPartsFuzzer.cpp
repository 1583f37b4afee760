// A GGUF model in several files, which the input contains one after the other, with a separator.
#include "tests/fuzz/GgufChecks.h"

#include <filesystem>
#include <fstream>

namespace {

constexpr llvm::StringLiteral mark = "--next part--";
constexpr unsigned maxParts = 9; ///< so that a number is one digit of the name

/// The parts as files of a folder that is removed with the object.
class PartFiles {
public:
  explicit PartFiles(llvm::StringRef input) {
    std::string name = (std::filesystem::temp_directory_path() / "mica-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data()))
      std::abort();
    folder = name;
    llvm::SmallVector<llvm::StringRef> parts;
    input.split(parts, mark, maxParts - 1);
    for (size_t i = 0; i < parts.size(); ++i)
      std::ofstream(part(i, parts.size()), std::ios::binary) << parts[i].str();
    count = parts.size();
  }
  ~PartFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  PartFiles(const PartFiles &) = delete;
  PartFiles &operator=(const PartFiles &) = delete;
  std::string first() const { return part(0, count); }

private:
  std::string part(size_t index, size_t all) const {
    return (folder /
            ("m-0000" + std::to_string(index + 1) + "-of-0000" + std::to_string(all) + ".gguf"))
        .string();
  }

  std::filesystem::path folder;
  size_t count = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  PartFiles files({reinterpret_cast<const char *>(data), size});
  mica::test::checkGgufModel(files.first());
  return 0;
}
