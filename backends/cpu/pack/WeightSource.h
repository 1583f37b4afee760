//===- WeightSource.h - where the bytes of weights come from ----*- C++ -*-===//
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

/// The blocks that the numbers of a row are stored in, where they are.
struct BlockCoding {
  const BlockFormat *format = nullptr; ///< null: numbers are stored one by one
  /// Makes a block of the codes without their scale and of that; where scales are stored apart.
  void (*join)(const uint8_t *codes, uint8_t scale, uint8_t *block) = nullptr;

  explicit operator bool() const { return format != nullptr; }
  int64_t elements() const { return format ? format->elements : 1; }
  int64_t bytes() const { return format ? format->bytes : 0; }
};

/// How elements of a tensor are stored.
struct StoredAs {
  WeightType type; ///< f32 where there are blocks: what they become
  BlockCoding blocks = {};

  /// Of `elements` from the begin of a row on, whole blocks where there are any.
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
  /// Added to all elements, before these are multiplied.
  float rowOffset = 0;
  /// What entries of the first and of the last axis are multiplied with; empty for 1.
  llvm::ArrayRef<float> rowFactors = {}, columnFactors = {};
  /// What errors in entries of the last axis weigh when they are quantized; empty: all the same.
  llvm::ArrayRef<float> importance = {};
  /// A byte for each block, where `bytes` holds these without their scales; else empty.
  llvm::ArrayRef<uint8_t> scales = {};

  StoredAs stored() const { return {type, blocks}; }
};

/// The tensors of a checkpoint, by their names.
class WeightSource {
public:
  virtual ~WeightSource() = default;
  /// The tensor `name`, valid as long as the source. Errors name the tensor.
  virtual llvm::Expected<SourceTensor> find(llvm::StringRef name) const = 0;
  /// The file that holds the tensor `name`, for messages; empty where there is none.
  virtual std::string fileOf(llvm::StringRef name) const { return {}; }
  /// Says that the tensor was consumed: whatever memory it takes may be given back.
  virtual void release(llvm::StringRef name) const = 0;
};

/// What weights are made of, by the attributes that name it in the IR: tensors and parts of tensors
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
