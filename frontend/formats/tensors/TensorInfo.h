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

/// The element types that safetensors files can declare. Mica computes with F32, BF16 and F16, and
/// makes F32 of F64; the others are known so that a tensor that is not read may have them.
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

/// The file's name of a type, e.g. "BF16"; the bits of one element; and the way back.
llvm::StringRef nameOf(StoredType type);
unsigned bitsOf(StoredType type);
std::optional<StoredType> storedTypeNamed(llvm::StringRef name);

/// Where a tensor lies: `size` bytes at `offset` of its file, little-endian, not necessarily
/// aligned to its elements, row-major unless there are `strides`. The shape is what the file
/// declares, checked against `size`.
struct TensorInfo {
  std::string name;
  StoredType type = StoredType::F32;
  bool isF64 = false;                 ///< stored as F64; `type` is what it becomes
  const TensorType *blocks = nullptr; ///< where it is stored in blocks; `type` is what they become
  llvm::SmallVector<int64_t, 4> shape;
  /// Elements from one to the next along each axis; empty where these lie row-major.
  llvm::SmallVector<int64_t, 4> strides = {};
  uint64_t offset = 0;
  uint64_t size = 0;
  unsigned file = 0; ///< index among the files of a WeightFiles
  /// Of blocks whose scales are a tensor of their own: its index among the tensors of a
  /// WeightFiles.
  std::optional<unsigned> scales = std::nullopt;
};

/// The name of what the file holds: the type, or that of the blocks.
llvm::StringRef storedNameOf(const TensorInfo &tensor);

/// A shape as messages show it: "[6400, 512]", and "[]" for a scalar.
std::string shown(llvm::ArrayRef<int64_t> shape);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TENSORS_TENSORINFO_H
