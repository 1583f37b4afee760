#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "frontend/text/tokenizer/SentencePieceModel.h"

/// A tokenizer.model that is accepted must produce a table that encodes and decodes safely.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto builder = mica::readSentencePieceModel({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!builder) {
    llvm::consumeError(builder.takeError());
    return 0;
  }
  std::vector<std::byte> bytes = builder->table.serialize();
  auto tokenizer = mica::rt::Tokenizer::load(bytes);
  if (tokenizer)
    if (auto ids = tokenizer->encode("One day, ab  \xC3\xA9\xFF\xEF\xAC\x81 12 ", true))
      tokenizer->decode(*ids);
  return 0;
}
