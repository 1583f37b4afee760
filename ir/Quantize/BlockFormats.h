//===- BlockFormats.h - block quantization formats --------------*- C++ -*-===//
//
// One description per format, from which everything else is derived: the values of a block, the
// packed layout of a weight, the kernels that read it, the type !mica.block<NAME> and its
// documentation. A format consists of code bits in planes, a mapping of codes to levels, a scale
// and optionally an offset per block, and optionally integer sub-scales and sub-offsets per group.
//
// Free of LLVM and MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_QUANTIZE_BLOCKFORMATS_H
#define MICA_IR_QUANTIZE_BLOCKFORMATS_H

#include <cstdint>
#include <span>
#include <string_view>

namespace mica {

/// `width` bits of every code of a block. With n = 8 / width, those of element i are in byte
/// `at + i / (stripe * n) * stripe + i % stripe`, shifted left by `width * (i / stripe % n)`.
struct CodePlane {
  int32_t at = 0;
  int32_t width = 0; ///< 1, 2, 4 or 8; 0: no plane
  int32_t stripe = 1;
};

/// How the scale (and the offset) of a block is stored.
enum class ScaleType : uint8_t {
  F16,
  BF16,
  E8M0Half, ///< one byte e: 2^(e - 127) / 2
};

/// How the sub-scales of a group are packed in a program.
enum class SubScaleType : uint8_t {
  None,
  Bytes,   ///< a signed byte for the scale, another one for the offset
  Nibbles, ///< 4 bits for the scale, in the same byte 4 bits for the offset
};

/// The maximum number of elements and of groups of a block.
inline constexpr int32_t kMaxBlockElements = 256, kMaxBlockGroups = 16;

/// An unpacked block. Element i is
/// `scale * scales[i / group] * level(codes[i]) + sign * offset * offsets[i / group]`; without
/// sub-scales both factors are 1, without offsets the second term is omitted.
struct BlockParts {
  uint8_t codes[kMaxBlockElements]; ///< unsigned: signed codes are stored plus 128
  uint16_t scale, offset;           ///< the bits as stored
  int8_t scales[kMaxBlockGroups], offsets[kMaxBlockGroups];
};

struct BlockFormat {
  std::string_view name; ///< as in !mica.block<name>
  int32_t elements;      ///< of a block
  int32_t bytes;         ///< of a block
  int32_t group;         ///< elements that share sub-scales; `elements` if there are none
  CodePlane low, high = {};
  int32_t bias = 0;               ///< level = code - bias, if `levels` is null
  const int8_t *levels = nullptr; ///< [16]; level = levels[code], if not null
  bool isSigned = false;          ///< 8-bit codes are signed; their bias is 128
  ScaleType scaleType = ScaleType::F16;
  int32_t scaleAt = 0;
  int32_t offsetAt = -1; ///< -1: no offsets
  int32_t offsetSign = 0;
  SubScaleType subScaleType = SubScaleType::None;
  /// Fills scales and offsets of the groups; null without sub-scales.
  void (*readSubScales)(const uint8_t *block, BlockParts &parts) = nullptr;
  /// Whether it is one of Mica's own formats, which are quantized from floats and may pad the last
  /// block of a row.
  bool isOwn = false;

  bool hasOffsets() const { return offsetAt >= 0; }
  bool hasSubScales() const { return subScaleType != SubScaleType::None; }
  int32_t groups() const { return elements / group; }
  /// Bits of a code.
  int32_t codeBits() const { return low.width + high.width; }
  /// Bits of an element, scales included, as files store them.
  double bits() const { return 8.0 * bytes / elements; }
  /// The bias that kernels subtract from an unsigned level: tables are stored plus 128.
  int32_t unsignedBias() const { return levels ? 128 : bias; }
};

/// The layout of a packed block-quantized matrix, in bytes. 64 rows of the matrix are packed
/// together: for each block along K a header, scale [64] and offset [64] as the format stores them,
/// then for every 32 elements of it a chunk: sub-scales [groups][64], sub-offsets [groups][64], the
/// lines of both planes. A plane of w bits has w lines of [64][4] bytes; four adjacent elements
/// along K, a quad, are the bytes of a lane: quad q of the chunk is in line q / (8 / w), shifted
/// left by w * (q % (8 / w)). Lines are in the order in which a kernel that processes quad after
/// quad needs them, those of the high plane first, because hardware prefetchers follow ascending
/// addresses.
struct PackedBlocks {
  static constexpr int64_t kColumns = 64, kChunk = 32, kQuads = kChunk / 4,
                           kLineBytes = 4 * kColumns;

  explicit PackedBlocks(const BlockFormat &format);

  int64_t chunks;      ///< of a whole block
  int64_t scaleBytes;  ///< of a scale
  int64_t offsetAt;    ///< of the offsets, from the beginning of a block
  int64_t headerBytes; ///< of 64 columns
  int64_t groups;      ///< with sub-scales per chunk: 0, 1 or 2
  int64_t subOffsetAt; ///< of the sub-offsets, from the beginning of a chunk
  int64_t chunkBytes;  ///< of 64 columns
  int64_t blockBytes;  ///< of 64 columns of a whole block

  /// The offset of a line of the low or high plane from the beginning of a chunk.
  int64_t lowLineAt(int64_t line) const;
  int64_t highLineAt(int64_t line) const;

  /// The size of 64 columns with `k` elements; the last block may be shorter, in whole chunks.
  int64_t bytesOf(int64_t k) const;

private:
  int64_t linesAt;             ///< of the planes' lines, from the beginning of a chunk
  int64_t lowWidth, highWidth; ///< of the planes
};

/// All formats.
std::span<const BlockFormat> blockFormats();
/// The format with this name, or null.
const BlockFormat *blockFormatNamed(std::string_view name);

/// Unpacks a block. `block` need not be aligned.
void splitBlock(const BlockFormat &format, const uint8_t *block, BlockParts &parts);

/// The inverse of splitBlock; only for Mica's own formats.
void joinBlock(const BlockFormat &format, const BlockParts &parts, uint8_t *block);

/// Converts the bits of a scale of the format to f32.
float scaleOf(const BlockFormat &format, uint16_t bits);

/// The values of a block, for GGUF formats bit-identical to those of the package `gguf`: products
/// first, then the sum, each rounded to f32.
void decodeBlock(const BlockFormat &format, const uint8_t *block, float *values);

} // namespace mica

#endif // MICA_IR_QUANTIZE_BLOCKFORMATS_H
