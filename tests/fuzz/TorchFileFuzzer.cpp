#include "frontend/weights/TorchFile.h"
#include "frontend/weights/TorchPickle.h"

#include <cstdlib>

/// Tensors that are returned lie inside of the file, whatever it says. Files that begin with 'p'
/// hold a pickle alone, so that its instructions are found sooner.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 'p') {
    llvm::consumeError(mica::readTorchPickle({data + 1, size - 1}, "fuzz").takeError());
    return 0;
  }
  auto tensors = mica::readTorchFile({data, size}, "fuzz");
  if (!tensors) {
    llvm::consumeError(tensors.takeError());
    return 0;
  }
  for (const mica::TensorInfo &tensor : *tensors)
    if (tensor.offset > size || tensor.size > size - tensor.offset)
      std::abort();
  return 0;
}
