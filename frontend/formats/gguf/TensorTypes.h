//===- TensorTypes.h - how GGUF files store numbers -------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H
#define MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H

#include "ir/Quantize/BlockFormats.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace mica {

/// Numbers in blocks of `elements` that take `bytes` each. Types of one element are plain numbers.
struct TensorType {
  uint32_t number; ///< in the file
  llvm::StringLiteral name;
  uint32_t elements, bytes;
  /// The format of the blocks; null for plain numbers and for types that are not read.
  const BlockFormat *format = nullptr;

  bool isPlain() const { return elements == 1; }
  /// How many bits a number takes, its part of the scales included.
  double bits() const { return 8.0 * bytes / elements; }
};

/// The type of that number; null where there is none.
const TensorType *tensorTypeNumbered(uint32_t number);

/// The type of that name, which there is.
const TensorType &mxfp4Type();

/// A block of MXFP4 of 32 neighboring pairs of numbers, the first of each in the low bits, and of
/// their scale: here the first half is in the low bits.
void joinMxfp4(const uint8_t *pairs, uint8_t scale, uint8_t *block);

/// The names of the types that become numbers, for messages.
std::string readableTypeNames();

/// `rows` is that many bytes of whole blocks; their numbers.
void decodeBlocks(const TensorType &type, const uint8_t *blocks, uint64_t count, float *values);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H
