#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "frontend/text/tokenizer/RankFile.h"

/// A rank file that is accepted must produce a table that the runtime opens or rejects.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto builder =
      mica::readRankFile(text, "cl100k_base.tiktoken", /*config=*/nullptr, /*published=*/false);
  if (!builder) {
    llvm::consumeError(builder.takeError());
    return 0;
  }
  std::vector<std::byte> bytes = builder->table.serialize();
  if (auto tokenizer = mica::rt::Tokenizer::load(bytes))
    if (auto ids = tokenizer->encode("ab <|endoftext|> \xC3\xA9\xFF 12  z", true))
      tokenizer->decode(*ids);
  return 0;
}
