#include "ir/Mica/Mica.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace mica;

namespace {

class QuantizedTypes : public testing::Test {
protected:
  QuantizedTypes() { context.loadDialect<MicaDialect>(); }

  QuantizedElementType type(StringRef text) {
    return cast<QuantizedElementType>(parseType(text, &context));
  }
  /// The physical type of a tensor type.
  Type physical(StringRef text) {
    auto tensor = cast<RankedTensorType>(parseType(text, &context));
    return cast<QuantizedElementType>(tensor.getElementType()).getPhysicalType(tensor);
  }

  MLIRContext context;
};

TEST_F(QuantizedTypes, NameEveryBlockFormat) {
  for (const BlockFormat &format : blockFormats()) {
    std::string text = "!mica.block<" + std::string(format.name) + ">";
    Type block = parseType(text, &context);
    ASSERT_TRUE(block) << text;
    EXPECT_EQ(blockFormatOf(block), &format);
    std::string printed;
    llvm::raw_string_ostream(printed) << block;
    EXPECT_EQ(printed, text);
  }
}

TEST_F(QuantizedTypes, UsesAreDistinguished) {
  Type int8 = type("!mica.int8"), block = type("!mica.block<q4_k>"),
       rows = type("!mica.int_rows<bits = 16, group = 32>");
  EXPECT_TRUE(isQuantized(int8, QuantizedUse::Cache));
  EXPECT_TRUE(isQuantized(block, QuantizedUse::Weights));
  EXPECT_TRUE(isQuantized(rows, QuantizedUse::Rows));
  EXPECT_FALSE(isQuantized(rows, QuantizedUse::Weights));
  for (Type element : {int8, block, rows})
    EXPECT_TRUE(isQuantized(element));
  EXPECT_FALSE(isQuantized(Float32Type::get(&context)));
  EXPECT_FALSE(isQuantized(Float32Type::get(&context), QuantizedUse::Weights));
}

TEST_F(QuantizedTypes, BitsAndGroupSizes) {
  EXPECT_EQ(type("!mica.int8").getBits(), 8);
  EXPECT_EQ(type("!mica.int8").getGroupSize(), 0) << "a head has one scale";
  EXPECT_EQ(type("!mica.int8").getDisplayName(), "int8");
  EXPECT_EQ(type("!mica.block<q6_k>").getBits(), 6);
  EXPECT_EQ(type("!mica.block<q6_k>").getGroupSize(), 256);
  EXPECT_EQ(type("!mica.block<q6_k>").getDisplayName(), "q6_k");
  EXPECT_EQ(type("!mica.int_rows<bits = 16, group = 32>").getBits(), 16);
  EXPECT_EQ(type("!mica.int_rows<bits = 16, group = 32>").getGroupSize(), 32);
  EXPECT_EQ(type("!mica.int_rows<bits = 8, group = 32>").getDisplayName(), "int8 per 32");
  EXPECT_TRUE(type("!mica.block<q8_0>").isOfFiles());
  EXPECT_FALSE(type("!mica.block<int8_g32>").isOfFiles());
  EXPECT_FALSE(type("!mica.int8").isOfFiles());
}

TEST_F(QuantizedTypes, MultipliedRowTypes) {
  Type rows = type("!mica.int_rows<bits = 16, group = 32>");
  EXPECT_EQ(type("!mica.block<q4_k>").getMultipliedRowType(), rows);
  EXPECT_FALSE(cast<QuantizedElementType>(rows).getMultipliedRowType());
  EXPECT_EQ(integerRowType(&context, 16), rows);
  EXPECT_EQ(integerRowBits(rows), 16);
  EXPECT_EQ(integerRowBits(Float32Type::get(&context)), 0);
}

TEST_F(QuantizedTypes, PhysicalTypesAreBytes) {
  // A scale and 32 codes of each of 64 columns, of which 10 are padding.
  const BlockFormat *format = blockFormatOf(type("!mica.block<q8_0>"));
  ASSERT_TRUE(format);
  int64_t bytes = PackedBlocks(*format).bytesOf(96);
  EXPECT_EQ(bytes, 3 * 64 * (2 + 32));
  EXPECT_EQ(physical("tensor<54x96x!mica.block<q8_0>>"),
            RankedTensorType::get({bytes}, IntegerType::get(&context, 8)));
  EXPECT_EQ(physical("tensor<5x130x96x!mica.block<q8_0>>"),
            RankedTensorType::get({5, 3 * bytes}, IntegerType::get(&context, 8)));
  auto weight = cast<RankedTensorType>(
      parseType("tensor<5x130x96x!mica.block<q8_0>, #mica.packed<columns = 64, depth = 4, "
                "k_block = 64>>",
                &context));
  EXPECT_EQ(getStoredBytes(weight), 5 * 3 * bytes);
  EXPECT_EQ(physical("tensor<?x64x!mica.int_rows<bits = 16, group = 32>>"),
            parseType("tensor<?x256xi8>", &context));
  EXPECT_FALSE(physical("tensor<?x?x4x8x!mica.int8>")) << "keys are part of a cache";
  EXPECT_FALSE(blockFormatOf(type("!mica.int8")));
}

} // namespace
