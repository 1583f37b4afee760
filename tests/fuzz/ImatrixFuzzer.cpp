#include "frontend/formats/gguf/Imatrix.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<mica::Imatrix> imatrix = mica::readImatrix({data, size}, "fuzz");
  if (!imatrix) {
    llvm::consumeError(imatrix.takeError());
    return 0;
  }
  for (const auto &entry : *imatrix) {
    for (float value : entry.second.meanSquares)
      if (!(value >= 0))
        std::abort();
    // The last matrix, as for experts.
    for (int64_t matrices : {1, 2, 3})
      llvm::consumeError(entry.second.matrix(matrices - 1, matrices).takeError());
  }
  return 0;
}
