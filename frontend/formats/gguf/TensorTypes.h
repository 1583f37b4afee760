//===- TensorTypes.h - number formats of GGUF files -------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H
#define MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H

#include "ir/Quantize/BlockFormats.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica {

/// A type with blocks of `elements` elements in `bytes` bytes. Types with one element per block are
/// plain numbers.
struct TensorType {
  uint32_t number; ///< in the file
  llvm::StringLiteral name;
  uint32_t elements, bytes;
  /// The format of the blocks; null for plain numbers and for unsupported types.
  const BlockFormat *format = nullptr;

  bool isPlain() const { return elements == 1; }
  /// Bits per number, including its share of the scales.
  double bits() const { return 8.0 * bytes / elements; }
};

/// The type with this number, or null.
const TensorType *tensorTypeNumbered(uint32_t number);

/// The types of which blocks are read, in the order of their numbers.
std::vector<const TensorType *> blockTypes();

/// The type MXFP4.
const TensorType &mxfp4Type();

/// Joins 4-bit codes of 32 numbers and their scale to a block of MXFP4. In the input, the codes of
/// adjacent numbers share a byte, the first in the low bits; in the block, the low bits hold the
/// first half.
void joinMxfp4(const uint8_t *pairs, uint8_t scale, uint8_t *block);

/// The names of the supported types, for messages.
std::string readableTypeNames();

/// Decodes `count` numbers from whole blocks to `values`.
void decodeBlocks(const TensorType &type, const uint8_t *blocks, uint64_t count, float *values);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_TENSORTYPES_H
