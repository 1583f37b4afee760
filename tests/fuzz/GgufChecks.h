// Properties of every GGUF model that can be opened, in one file or several.
#ifndef MICA_TESTS_FUZZ_GGUFCHECKS_H
#define MICA_TESTS_FUZZ_GGUFCHECKS_H

#include "frontend/config/gguf/GgufConfig.h"
#include "frontend/config/gguf/GgufTensors.h"
#include "frontend/text/tokenizer/ReadTokenizer.h"

#include <cstdlib>

namespace mica::test {

/// The tensors of each file are within it and do not overlap, and their blocks can be read.
inline void checkOffsets(const GgufModel &model) {
  std::vector<uint64_t> ends;
  for (const GgufTensor &tensor : model.tensors()) {
    ends.resize(std::max<size_t>(ends.size(), tensor.file + 1));
    if (tensor.offset < ends[tensor.file])
      std::abort();
    ends[tensor.file] = tensor.offset + tensor.size;
    llvm::ArrayRef<uint8_t> bytes = model.bytes(tensor);
    if (!tensor.type->format)
      continue;
    std::vector<float> values(tensor.type->elements);
    for (size_t at = 0; at < bytes.size(); at += tensor.type->bytes)
      decodeBlocks(*tensor.type, bytes.data() + at, 1, values.data());
  }
}

/// Opens the model as the compiler does and reads all of its metadata.
inline void checkGgufModel(llvm::StringRef path) {
  auto model = GgufModel::open(path);
  if (!model)
    return llvm::consumeError(model.takeError());
  checkOffsets(*model);
  for (const auto &entry : model->metadata())
    static_cast<void>(entry.getValue().shown());
  auto config = readGgufConfig(*model);
  if (config)
    nameGgufTensors(*model, *config);
  else
    llvm::consumeError(config.takeError());
  auto tokenizer = readTokenizer(path);
  if (!tokenizer)
    llvm::consumeError(tokenizer.takeError());
}

} // namespace mica::test

#endif // MICA_TESTS_FUZZ_GGUFCHECKS_H
