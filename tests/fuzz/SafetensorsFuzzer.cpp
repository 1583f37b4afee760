#include "frontend/formats/safetensors/Safetensors.h"

#include <cstdlib>

/// Whatever the header contains, returned tensors are within the file and do not overlap.
static void checkOffsets(llvm::ArrayRef<mica::TensorInfo> tensors, uint64_t size) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t end = tensors[i].offset + tensors[i].size;
    uint64_t limit = i + 1 < tensors.size() ? tensors[i + 1].offset : size;
    if (end < tensors[i].offset || end != limit)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tensors = mica::readSafetensorsHeader({data, size}, "fuzz");
  if (tensors)
    checkOffsets(*tensors, size);
  else
    llvm::consumeError(tensors.takeError());
  return 0;
}
