// mica-tokenize: tokenizes a file of texts with a folder's tokenizer, for comparison with others.
//
//   mica-tokenize FOLDER TEXTS OUT
//
// TEXTS holds u32 length + bytes per text; OUT gets u32 count + i32 ids, u32 length + decoded bytes
// per text (all little-endian).
#include "TokenizerFixture.h"

#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <fstream>

using namespace mica;
using namespace mica::test;

namespace {

template <typename T> void append(std::string &out, const T *data, size_t count) {
  auto size = static_cast<uint32_t>(count);
  out.append(reinterpret_cast<const char *>(&size), sizeof size);
  out.append(reinterpret_cast<const char *>(data), count * sizeof(T));
}

/// The next text of `rest`, which gets shorter; the file is trusted.
std::string_view take(std::string_view &rest) {
  uint32_t length = 0;
  std::memcpy(&length, rest.data(), sizeof length);
  std::string_view text = rest.substr(sizeof length, length);
  rest.remove_prefix(sizeof length + text.size());
  return text;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    llvm::errs() << "usage: mica-tokenize FOLDER TEXTS OUT\n";
    return 2;
  }
  auto open = openFolder(argv[1]);
  if (!open) {
    llvm::errs() << llvm::toString(open.takeError()) << "\n";
    return 1;
  }
  std::string file = readText(argv[2]), out;
  for (std::string_view rest = file; rest.size() >= sizeof(uint32_t);) {
    std::vector<int32_t> ids = *open->tokenizer.encode(take(rest), /*addSpecial=*/false);
    append(out, ids.data(), ids.size());
    std::string text = open->tokenizer.decode(ids);
    append(out, text.data(), text.size());
  }
  return std::ofstream(argv[3], std::ios::binary) << out ? 0 : 1;
}
