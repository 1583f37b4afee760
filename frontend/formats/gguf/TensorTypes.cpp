#include "frontend/formats/gguf/TensorTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

/// The type of a supported format, which has its name in lower case and gives the size of blocks.
TensorType blocksOf(uint32_t number, llvm::StringLiteral name) {
  const BlockFormat *format = blockFormatNamed(name.lower());
  return {number, name, static_cast<uint32_t>(format->elements),
          static_cast<uint32_t>(format->bytes), format};
}

llvm::ArrayRef<TensorType> tensorTypes() {
  static const TensorType types[] = {
      {0, "F32", 1, 4},        {1, "F16", 1, 2},         blocksOf(2, "Q4_0"),
      blocksOf(3, "Q4_1"),     blocksOf(6, "Q5_0"),      blocksOf(7, "Q5_1"),
      blocksOf(8, "Q8_0"),     {9, "Q8_1", 32, 40},      blocksOf(10, "Q2_K"),
      blocksOf(11, "Q3_K"),    blocksOf(12, "Q4_K"),     blocksOf(13, "Q5_K"),
      blocksOf(14, "Q6_K"),    {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      blocksOf(20, "IQ4_NL"),  {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      blocksOf(23, "IQ4_XS"),  {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},       {27, "I64", 1, 8},        {28, "F64", 1, 8},
      {29, "IQ1_M", 256, 56},  {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},  blocksOf(39, "MXFP4"),    {40, "NVFP4", 64, 36},
      {41, "Q1_0", 128, 18},
  };
  return types;
}

} // namespace

const TensorType *tensorTypeNumbered(uint32_t number) {
  for (const TensorType &type : tensorTypes())
    if (type.number == number)
      return &type;
  return nullptr;
}

std::vector<const TensorType *> blockTypes() {
  std::vector<const TensorType *> types;
  for (const TensorType &type : tensorTypes())
    if (type.format)
      types.push_back(&type);
  return types;
}

const TensorType &mxfp4Type() { return *tensorTypeNumbered(39); }

void joinMxfp4(const uint8_t *pairs, uint8_t scale, uint8_t *block) {
  auto number = [&](int i) { return pairs[i / 2] >> 4 * (i % 2) & 15; };
  block[0] = scale;
  for (int i = 0; i < 16; ++i)
    block[1 + i] = static_cast<uint8_t>(number(i) | number(i + 16) << 4);
}

std::string readableTypeNames() {
  std::string names = "F32, F16, BF16";
  for (const TensorType *type : blockTypes())
    names += (", " + type->name).str();
  return names;
}

void decodeBlocks(const TensorType &type, const uint8_t *blocks, uint64_t count, float *values) {
  const BlockFormat &format = *type.format;
  for (uint64_t i = 0; i < count; ++i)
    decodeBlock(format, blocks + i * type.bytes, values + i * type.elements);
}

} // namespace mica
