//===- ByteAlphabet.h - GPT-2's byte alphabet -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_BYTEALPHABET_H
#define MICA_FRONTEND_TEXT_TOKENIZER_BYTEALPHABET_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mica {

/// GPT-2's byte alphabet: bytes that are printable in Latin-1 represent themselves, the others are
/// U+0100 and up, in order.
uint32_t byteLevelCodePoint(uint8_t byte);
/// The character of a byte, as UTF-8.
std::string byteLevelChar(uint8_t byte);
/// The bytes that `text` (UTF-8) represents; nothing if a character is not in the alphabet.
std::optional<std::string> byteLevelBytes(llvm::StringRef text);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_BYTEALPHABET_H
