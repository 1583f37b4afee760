//===- GgufValue.h - a metadata value of a GGUF file ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_GGUFVALUE_H
#define MICA_FRONTEND_FORMATS_GGUF_GGUFVALUE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica {

/// Types of values, numbered as in the file.
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

/// A metadata value: a view of the file, which must outlive it. Its content was checked when the
/// header was read.
class GgufValue {
public:
  GgufValue() = default;
  GgufValue(GgufKind kind, llvm::ArrayRef<uint8_t> bytes) : valueKind(kind), bytes(bytes) {}
  GgufValue(GgufKind element, uint64_t count, llvm::ArrayRef<uint8_t> bytes)
      : valueKind(GgufKind::Array), element(element), count(count), bytes(bytes) {}

  GgufKind kind() const { return valueKind; }
  /// The number of elements of an array.
  uint64_t size() const { return count; }

  /// The value, if it has this type. An f32 is converted to the shortest decimal number that
  /// represents it: 1e-5 in the original config is 1e-5 here, and not 9.99999974e-06.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<llvm::StringRef> string() const;
  /// The elements of an array of strings, f32, integers or booleans; nullopt for other values.
  std::optional<std::vector<llvm::StringRef>> strings() const;
  std::optional<std::vector<float>> floats() const;
  std::optional<std::vector<int64_t>> integers() const;
  std::optional<std::vector<bool>> booleans() const;
  /// Element `index` of an array with elements of fixed size.
  GgufValue at(uint64_t index) const;

  /// The value as text for messages.
  std::string shown() const;

private:
  GgufKind valueKind = GgufKind::U8, element = GgufKind::U8;
  uint64_t count = 0;
  llvm::ArrayRef<uint8_t> bytes; ///< without the length of a string or the header of an array
};

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_GGUFVALUE_H
