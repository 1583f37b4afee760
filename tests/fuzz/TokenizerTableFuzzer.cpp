#include "backends/runtime/text/tokenizer/Tokenizer.h"

#include <cstdlib>

static bool startsInsideACharacter(const std::string &text) {
  return !text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80;
}

/// The input is a table; its last 64 bytes are also the text and the ids to process with it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tokenizer = mica::rt::Tokenizer::load(std::as_bytes(std::span(data, size)));
  if (!tokenizer)
    return 0;
  size_t tail = size < 64 ? size : 64;
  std::string text(reinterpret_cast<const char *>(data) + size - tail, tail);
  auto ids = tokenizer->encode(text + " ab e\xCC\x81 12", true);
  for (int32_t id : ids ? *ids : std::vector<int32_t>())
    if (id < 0 || id >= tokenizer->size())
      std::abort();
  mica::rt::Tokenizer::Decoder decoder(*tokenizer, tail % 2 == 0, tail % 3 == 0);
  for (char byte : text)
    if (startsInsideACharacter(decoder.push(static_cast<unsigned char>(byte))))
      std::abort();
  if (startsInsideACharacter(decoder.finish()))
    std::abort();
  return 0;
}
