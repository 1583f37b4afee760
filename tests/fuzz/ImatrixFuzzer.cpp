#include "frontend/gguf/Imatrix.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<mica::Imatrix> imatrix = mica::readImatrix({data, size}, "fuzz");
  if (!imatrix) {
    llvm::consumeError(imatrix.takeError());
    return 0;
  }
  for (const auto &entry : *imatrix)
    for (float value : entry.second.meanSquares)
      if (!(value >= 0))
        std::abort();
  return 0;
}
