#include "frontend/text/tokenizer/ByteAlphabet.h"

#include "backends/runtime/text/base/Utf8.h"

#include <array>

namespace mica {
namespace {

bool prints(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint32_t, 256> codePoints;
  std::array<int16_t, 0x180> bytes; // by code point; -1: not in the alphabet
  Alphabet() {
    bytes.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      codePoints[byte] = prints(byte) ? byte : next++;
      bytes[codePoints[byte]] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet &alphabet() {
  static const Alphabet instance;
  return instance;
}

} // namespace

uint32_t byteLevelCodePoint(uint8_t byte) { return alphabet().codePoints[byte]; }

std::string byteLevelChar(uint8_t byte) {
  std::string text;
  rt::tokenizer::appendChar(text, byteLevelCodePoint(byte));
  return text;
}

std::optional<std::string> byteLevelBytes(llvm::StringRef text) {
  const auto &bytes = alphabet().bytes;
  std::string out;
  while (!text.empty()) {
    uint32_t point = rt::tokenizer::decodeChar(text);
    if (point >= bytes.size() || bytes[point] < 0)
      return std::nullopt;
    out += static_cast<char>(bytes[point]);
    text = text.drop_front(rt::tokenizer::charLength(text[0]));
  }
  return out;
}

} // namespace mica
