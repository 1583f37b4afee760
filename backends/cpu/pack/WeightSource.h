//===- WeightSource.h - sources of weights ----------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_WEIGHTSOURCE_H
#define MICA_BACKENDS_CPU_PACK_WEIGHTSOURCE_H

#include "ir/Quantize/BlockFormats.h"

#include "mlir/IR/Attributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace mica::cpu {

/// Element types of checkpoints and, without F16, of programs.
enum class WeightType { F32, BF16, F16 };

inline size_t sizeOf(WeightType type) { return type == WeightType::F32 ? 4 : 2; }

/// The block format of a row, if it has one.
struct BlockCoding {
  const BlockFormat *format = nullptr; ///< null: not block-quantized
  /// Joins codes and scale to a block; only set if scales are stored separately.
  void (*join)(const uint8_t *codes, uint8_t scale, uint8_t *block) = nullptr;

  explicit operator bool() const { return format != nullptr; }
  int64_t elements() const { return format ? format->elements : 1; }
  int64_t bytes() const { return format ? format->bytes : 0; }
};

/// How elements of a tensor are stored.
struct StoredAs {
  WeightType type; ///< f32 if there are blocks: the decoded type
  BlockCoding blocks = {};

  /// The size of the first `elements` elements of a row, which must be whole blocks.
  int64_t bytesOf(int64_t elements) const {
    return blocks ? elements / blocks.elements() * blocks.bytes()
                  : elements * int64_t(sizeOf(type));
  }
};

/// A tensor of a checkpoint: row-major, little-endian, not necessarily aligned.
struct SourceTensor {
  WeightType type;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<uint8_t> bytes;
  BlockCoding blocks = {};
  /// Added to all elements before they are multiplied by the factors.
  float rowOffset = 0;
  /// The factors of the entries of the first and of the last axis; empty: 1.
  llvm::ArrayRef<float> rowFactors = {}, columnFactors = {};
  /// The weights of quantization errors by entry of the last axis; empty: equal.
  llvm::ArrayRef<float> importance = {};
  /// One scale per block, if `bytes` has blocks without scales; else empty.
  llvm::ArrayRef<uint8_t> scales = {};

  StoredAs stored() const { return {type, blocks}; }
};

/// The tensors of a checkpoint by name.
class WeightSource {
public:
  virtual ~WeightSource() = default;
  /// The tensor `name`, valid as long as the source. Errors name the tensor.
  virtual llvm::Expected<SourceTensor> find(llvm::StringRef name) const = 0;
  /// The file that contains the tensor `name`, for messages; empty if there is none.
  virtual std::string fileOf(llvm::StringRef name) const { return {}; }
  /// Tells the source that the tensor has been consumed, so that its memory can be released.
  virtual void release(llvm::StringRef name) const = 0;
};

/// The sources of weights by the attributes that name them in the IR: tensors and parts of tensors
/// (TensorPart::of). The functions are those of WeightSource.
class PartSource {
public:
  virtual ~PartSource() = default;
  virtual llvm::Expected<SourceTensor> find(mlir::Attribute source) const = 0;
  virtual std::string fileOf(mlir::Attribute source) const = 0;
  virtual void release(mlir::Attribute source) const = 0;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_WEIGHTSOURCE_H
