#include "frontend/weights/ShardIndex.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto index = mica::shardIndexFrom({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!index) {
    llvm::consumeError(index.takeError());
    return 0;
  }
  // No name may lead out of the folder, and every tensor has a file.
  for (const std::string &file : index->files)
    if (file.find('/') != std::string::npos || file.front() == '.')
      std::abort();
  for (const auto &entry : index->tensors)
    if (entry.getValue() >= index->files.size())
      std::abort();
  return 0;
}
