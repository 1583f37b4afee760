#include "frontend/formats/safetensors/ShardIndex.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto files = mica::shardIndexFrom({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!files) {
    llvm::consumeError(files.takeError());
    return 0;
  }
  // No name may be outside of the folder, and names are unique.
  for (size_t i = 0; i < files->size(); ++i) {
    const std::string &file = (*files)[i];
    if (file.find('/') != std::string::npos || file.front() == '.' ||
        (i > 0 && file <= (*files)[i - 1]))
      std::abort();
  }
  return 0;
}
