//===- GgufFile.h - the header of a GGUF file -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H
#define MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H

#include "frontend/formats/gguf/TensorTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace mica {

/// Kinds of values, numbered as in the file.
enum class GgufKind : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};

/// A value of the metadata: a view of the file, which must live as long. What it holds was checked
/// when the header was read.
class GgufValue {
public:
  GgufValue() = default;
  GgufValue(GgufKind kind, llvm::ArrayRef<uint8_t> bytes) : itsKind(kind), bytes(bytes) {}
  GgufValue(GgufKind element, uint64_t count, llvm::ArrayRef<uint8_t> bytes)
      : itsKind(GgufKind::Array), element(element), count(count), bytes(bytes) {}

  GgufKind kind() const { return itsKind; }
  /// How many elements an array has.
  uint64_t size() const { return count; }

  /// What the value is, where it is of such a kind. An f32 becomes the shortest decimal that means
  /// it: 1e-5 was 1e-5 in the config that it comes from, and not 9.99999974e-06.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<llvm::StringRef> string() const;
  /// Elements of an array of strings, of f32, of integers.
  std::optional<std::vector<llvm::StringRef>> strings() const;
  std::optional<std::vector<float>> floats() const;
  std::optional<std::vector<int64_t>> integers() const;
  /// Elements of an array of fixed size, one by one.
  GgufValue at(uint64_t index) const;

  /// As it may be in a message.
  std::string shown() const;

private:
  GgufKind itsKind = GgufKind::U8, element = GgufKind::U8;
  uint64_t count = 0;
  llvm::ArrayRef<uint8_t> bytes; ///< without the length of a string or the head of an array
};

/// Where a tensor lies: `size` bytes at `offset` of its file. The shape is row-major: the last
/// dimension is the one whose elements are next to each other.
struct GgufTensor {
  std::string name;
  const TensorType *type = nullptr;
  llvm::SmallVector<int64_t, 4> shape;
  uint64_t offset = 0, size = 0;
  unsigned file = 0; ///< index among the files of a GgufModel
};

/// What a file says of itself.
struct GgufHeader {
  uint32_t version = 0;
  llvm::StringMap<GgufValue> metadata;
  std::vector<GgufTensor> tensors; ///< in the order of their data
};

/// Reads the header of the file `bytes`, which must outlive it; `path` names the file in errors.
///
/// Refused: versions other than 2 and 3, big-endian files; counts and lengths beyond the file; keys
/// and tensors that occur twice; kinds and types that are not known; arrays nested deeper than 4;
/// tensors of more than 4 dimensions, whose sizes overflow or are no whole blocks, that are not
/// aligned, end after the file or overlap.
llvm::Expected<GgufHeader> readGgufHeader(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path);

/// Whether a file begins as GGUF files do, of whatever version.
bool beginsAsGguf(llvm::ArrayRef<uint8_t> bytes);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H
