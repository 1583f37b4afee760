#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mica {
namespace {

struct TypeRow {
  StoredType type;
  llvm::StringLiteral name;
  unsigned bits;
};

constexpr TypeRow typeRows[] = {
    {StoredType::F64, "F64", 64},       {StoredType::F32, "F32", 32},
    {StoredType::F16, "F16", 16},       {StoredType::BF16, "BF16", 16},
    {StoredType::F8E4M3, "F8_E4M3", 8}, {StoredType::F8E5M2, "F8_E5M2", 8},
    {StoredType::F8E8M0, "F8_E8M0", 8}, {StoredType::F6E2M3, "F6_E2M3", 6},
    {StoredType::F6E3M2, "F6_E3M2", 6}, {StoredType::F4, "F4", 4},
    {StoredType::I64, "I64", 64},       {StoredType::I32, "I32", 32},
    {StoredType::I16, "I16", 16},       {StoredType::I8, "I8", 8},
    {StoredType::U64, "U64", 64},       {StoredType::U32, "U32", 32},
    {StoredType::U16, "U16", 16},       {StoredType::U8, "U8", 8},
    {StoredType::Bool, "BOOL", 8},      {StoredType::C64, "C64", 64},
};

} // namespace

llvm::StringRef nameOf(StoredType type) { return typeRows[static_cast<size_t>(type)].name; }

unsigned bitsOf(StoredType type) { return typeRows[static_cast<size_t>(type)].bits; }

llvm::StringRef storedNameOf(const TensorInfo &tensor) {
  return tensor.blocks ? llvm::StringRef(tensor.blocks->name)
                       : nameOf(tensor.isF64 ? StoredType::F64 : tensor.type);
}

std::optional<StoredType> storedTypeNamed(llvm::StringRef name) {
  for (const TypeRow &row : typeRows)
    if (row.name == name)
      return row.type;
  return std::nullopt;
}

std::string shown(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleaveComma(shape, stream);
  stream << ']';
  return text;
}

} // namespace mica
