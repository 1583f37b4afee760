//===- WireReader.h - Protocol Buffers' wire format -------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_WIREREADER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_WIREREADER_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <cstring>

namespace mica {

/// One field of a message. The valid member depends on the type of the field.
struct WireField {
  uint32_t number = 0;
  uint64_t integer = 0;  // varint, fixed32 and fixed64 bits
  llvm::StringRef bytes; // length-delimited

  float asFloat() const {
    auto bits = static_cast<uint32_t>(integer);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

/// Iterates over the fields of a message. The sentencepiece library validates files, but its
/// package has no header for the message itself, which contains data that its interface does not
/// provide (character map, white space rules).
class WireReader {
public:
  explicit WireReader(llvm::StringRef message) : rest(message) {}

  /// The next field; false at the end and at the first invalid byte (then `broken`).
  bool next(WireField &field);
  bool broken = false;

private:
  bool varint(uint64_t &value);
  bool take(uint64_t size, llvm::StringRef &bytes);

  llvm::StringRef rest;
};

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_WIREREADER_H
