#include "backends/runtime/text/tokenizer/Tokenizer.h"
#include "frontend/support/Json.h"
#include "frontend/text/tokenizer/TokenizerConfig.h"
#include "frontend/text/tokenizer/TokenizerJson.h"

/// A tokenizer.json that is accepted must produce a table that the runtime opens or rejects, and
/// that encodes what it decodes safely. The same bytes are used as its configuration.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto root = mica::parseJson(text, "fuzz");
  if (!root) {
    llvm::consumeError(root.takeError());
    return 0;
  }
  auto builder = mica::readTokenizerJson(*root, "fuzz");
  if (!builder) {
    llvm::consumeError(builder.takeError());
    mica::TokenizerBuilder empty;
    llvm::consumeError(
        mica::applyTokenizerConfig(&*root, "fuzz", mica::TokenizerSource::VocabAndMerges, empty));
    return 0;
  }
  llvm::consumeError(
      mica::applyTokenizerConfig(nullptr, "fuzz", mica::TokenizerSource::TokenizerJson, *builder));
  std::vector<std::byte> bytes = builder->table.serialize();
  auto tokenizer = mica::rt::Tokenizer::load(bytes);
  if (tokenizer)
    if (auto ids = tokenizer->encode("ab <end> \xC3\xA9\xFF 12  z", true))
      tokenizer->decode(*ids);
  return 0;
}
