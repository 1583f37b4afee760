//===- TensorInfo.h - one stored tensor -------------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_TENSORS_TENSORINFO_H
#define MICA_FRONTEND_FORMATS_TENSORS_TENSORINFO_H

#include "frontend/formats/gguf/TensorTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mica {

/// The element types of safetensors files. Mica computes with F32, BF16 and F16, and converts F64
/// to F32; other types are only allowed for tensors that are not used.
enum class StoredType {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  F6E2M3,
  F6E3M2,
  F4,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool,
  C64,
};

/// The name of a type in files, e.g. "BF16"; the bits of an element; the type with a name.
llvm::StringRef nameOf(StoredType type);
unsigned bitsOf(StoredType type);
std::optional<StoredType> storedTypeNamed(llvm::StringRef name);

/// The location of a tensor: `size` bytes at `offset` of its file, little-endian, not necessarily
/// aligned, row-major unless there are `strides`. The shape is the declared one, checked against
/// `size`.
struct TensorInfo {
  std::string name;
  StoredType type = StoredType::F32;
  bool isF64 = false;        ///< stored as F64; `type` is the converted type
  bool isNegatedExp = false; ///< stored as F32 values -exp(x); the tensor's values are x
  /// If not 0, the rows are of heads with so many elements, which are stored alternating between
  /// the halves of a head.
  int64_t interleavedHeadDim = 0;
  const TensorType *blocks = nullptr; ///< block format, or null; `type` is then the decoded type
  llvm::SmallVector<int64_t, 4> shape;
  /// The strides of the axes in elements; empty: row-major.
  llvm::SmallVector<int64_t, 4> strides = {};
  uint64_t offset = 0;
  uint64_t size = 0;
  unsigned file = 0; ///< index in the files of a WeightFiles
  /// For blocks whose scales are a separate tensor: its index in the tensors of a WeightFiles.
  std::optional<unsigned> scales = std::nullopt;
};

/// The name of the stored type or block format.
llvm::StringRef storedNameOf(const TensorInfo &tensor);

/// A shape as text for messages: "[6400, 512]", and "[]" for a scalar.
std::string shown(llvm::ArrayRef<int64_t> shape);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TENSORS_TENSORINFO_H
