// UTF-8 for the tokenizer: lengths, repair of invalid text, and a stream that emits only whole
// characters.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_BASE_UTF8_H
#define MICA_BACKENDS_RUNTIME_TEXT_BASE_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::rt::tokenizer {

/// The kind of the first bytes of a text.
struct Utf8Prefix {
  enum State {
    Valid,     ///< a character of `length` bytes
    Invalid,   ///< a maximal ill-formed part of `length` bytes (Unicode 15, section 3.9)
    Incomplete ///< all bytes are the start of a character whose rest is missing
  } state;
  uint32_t length;
};

/// Classifies the start of `text`, which is not empty.
Utf8Prefix scanUtf8(std::string_view text);

/// Whether `text` is well-formed.
bool isUtf8(std::string_view text);

/// `text` with every maximal ill-formed part replaced by U+FFFD: Python's
/// bytes.decode(errors="replace").
std::string repairUtf8(std::string_view text);

/// The length of the character that starts at `text[0]` of well-formed text.
inline uint32_t charLength(char lead) {
  auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The number of characters of well-formed text.
inline int64_t countCharacters(std::string_view text) {
  int64_t count = 0;
  for (char c : text)
    count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

/// The code point at the start of well-formed text.
uint32_t decodeChar(std::string_view text);
/// Appends a code point; surrogates and numbers above 0x10FFFF become U+FFFD.
void appendChar(std::string &text, uint32_t codePoint);

/// Collects bytes and returns whole characters.
class Utf8Stream {
public:
  /// Appends the complete characters of `bytes` to `out`; each ill-formed part becomes one U+FFFD,
  /// or with `perByte` one per byte.
  void push(std::string_view bytes, std::string &out, bool perByte);
  /// An incomplete character at the end becomes U+FFFD.
  void flush(std::string &out, bool perByte);
  bool empty() const { return pending.empty(); }

private:
  std::string pending; // at most 3 bytes between calls
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_BASE_UTF8_H
