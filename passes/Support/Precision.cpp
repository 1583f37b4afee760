//===- Precision.cpp - names and types of precisions --------------------------===//

#include "passes/Support/Precision.h"

using namespace mlir;
using namespace mica;

namespace {
struct Entry {
  Precision precision;
  StringLiteral name, help;
};
} // namespace

static constexpr Entry kPrecisions[] = {
    {Precision::F32, "f32", "32 bits"},
    {Precision::BF16, "bf16", "the upper 16 bits of f32"},
    {Precision::Int8, "int8", "8-bit integers, a scale per row"},
    {Precision::Int4, "int4", "4-bit integers, a multiplier per 32 and a scale per row"},
};

StringRef mica::nameOf(Precision precision) {
  return kPrecisions[static_cast<size_t>(precision)].name;
}

std::optional<Precision> mica::precisionNamed(StringRef name) {
  for (const Entry &entry : kPrecisions)
    if (entry.name == name)
      return entry.precision;
  return std::nullopt;
}

Type mica::elementTypeOf(MLIRContext *context, Precision precision) {
  switch (precision) {
  case Precision::F32:
    return Float32Type::get(context);
  case Precision::BF16:
    return BFloat16Type::get(context);
  case Precision::Int8:
    return Int8Type::get(context);
  case Precision::Int4:
    return Int4Type::get(context, QuantizedRow::group);
  }
  llvm_unreachable("all precisions are handled above");
}

Precision mica::precisionOf(Type element) {
  if (auto blocks = dyn_cast<BlockType>(element))
    return blocks.getFormat()->codeBits() > 5 ? Precision::Int8 : Precision::Int4;
  for (const Entry &entry : kPrecisions)
    if (elementTypeOf(element.getContext(), entry.precision) == element)
      return entry.precision;
  llvm_unreachable("no element type of a matrix in a program");
}

llvm::cl::ValuesClass mica::precisionValues() {
  SmallVector<llvm::cl::OptionEnumValue> values;
  for (const Entry &entry : kPrecisions)
    values.push_back({entry.name, static_cast<int>(entry.precision), entry.help});
  return llvm::cl::ValuesClass({values[0], values[1], values[2], values[3]});
}
