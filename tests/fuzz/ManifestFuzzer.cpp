// The reader of a program's manifest.
#include "backends/runtime/abi/Manifest.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto manifest = mica::rt::parseManifest({reinterpret_cast<const char *>(data), size});
  if (manifest && (manifest->vocab < 1 || manifest->maxSeq < 1 || manifest->positionBlock < 1))
    __builtin_trap();
  return 0;
}
