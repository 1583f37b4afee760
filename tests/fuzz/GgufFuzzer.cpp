#include "frontend/config/gguf/GgufConfig.h"
#include "frontend/tokenizer/ReadTokenizer.h"

#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace {

/// The input as a file that only this process sees: models are opened by their path.
class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : file(memfd_create("fuzz", 0)) {
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~MemoryFile() { close(file); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }

private:
  int file;
};

/// Tensors lie inside of the file, one behind the other, and their blocks can be read.
void checkPlaces(const mica::GgufModel &model) {
  uint64_t end = 0;
  for (const mica::GgufTensor &tensor : model.tensors()) {
    if (tensor.offset < end)
      std::abort();
    end = tensor.offset + tensor.size;
    llvm::ArrayRef<uint8_t> bytes = model.bytes(tensor);
    if (!tensor.type->format())
      continue;
    std::vector<float> values(tensor.type->elements);
    for (size_t at = 0; at < bytes.size(); at += tensor.type->bytes)
      mica::decodeBlocks(*tensor.type, bytes.data() + at, 1, values.data());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(data, size);
  auto model = mica::GgufModel::open(file.path());
  if (!model) {
    llvm::consumeError(model.takeError());
    return 0;
  }
  checkPlaces(*model);
  for (const auto &entry : model->metadata())
    static_cast<void>(entry.getValue().shown());
  auto config = mica::readGgufConfig(*model);
  if (config)
    mica::nameGgufTensors(*model, *config);
  else
    llvm::consumeError(config.takeError());
  auto tokenizer = mica::readTokenizer(file.path());
  if (!tokenizer)
    llvm::consumeError(tokenizer.takeError());
  return 0;
}
