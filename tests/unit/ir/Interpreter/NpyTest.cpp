//===- NpyTest.cpp - valid and malformed .npy files -----------------------===//

#include "ir/Interpreter/Npy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mica::interp;
using ::testing::HasSubstr;

namespace {

/// A file of version 1.0 with this header and these elements.
std::string fileOf(const std::string &header, const std::string &elements) {
  std::string length{static_cast<char>(header.size() & 0xff),
                     static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + length + header + elements;
}

std::string headerOf(const std::string &descr, const std::string &shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

std::string errorOf(const std::string &file) {
  llvm::Expected<NpyArray> array = parseNpy(file);
  return array ? "" : llvm::toString(array.takeError());
}

class NpyTest : public ::testing::Test {
protected:
  Tensor convert(const NpyArray &array, Type type) { return llvm::cantFail(toTensor(array, type)); }

  std::string conversionError(const NpyArray &array, Type type) {
    llvm::Expected<Tensor> tensor = toTensor(array, type);
    return tensor ? "" : llvm::toString(tensor.takeError());
  }

  MLIRContext context;
  Type f32 = Float32Type::get(&context), bf16 = BFloat16Type::get(&context),
       f16 = Float16Type::get(&context);
  Type i1 = IntegerType::get(&context, 1), i32 = IntegerType::get(&context, 32),
       i64 = IntegerType::get(&context, 64);
};

TEST_F(NpyTest, WrittenArraysAreReadBack) {
  Tensor floats{{2, 3}, f32, {1, -2, 0.5, 1e-30f, 3, INFINITY}, {}};
  NpyArray array = llvm::cantFail(parseNpy(formatNpy(toNpy(floats))));
  EXPECT_EQ(convert(array, f32).floats, floats.floats);
  EXPECT_EQ(convert(array, f32).shape, floats.shape);
  for (Type type : {i1, i32, i64}) {
    Tensor integers{{3}, type, {}, {1, 0, 1}};
    array = llvm::cantFail(parseNpy(formatNpy(toNpy(integers))));
    EXPECT_EQ(convert(array, type).ints, integers.ints);
  }
}

TEST_F(NpyTest, DataIsAlignedTo64Bytes) {
  std::string file = formatNpy(toNpy(Tensor{{1}, f32, {1}, {}}));
  EXPECT_EQ((file.size() - 4) % 64, 0u);
}

TEST_F(NpyTest, ScalarsAndEmptyArrays) {
  EXPECT_EQ(
      convert(llvm::cantFail(parseNpy(fileOf(headerOf("<i4", "()"), std::string("\7\0\0\0", 4)))),
              i32)
          .ints,
      std::vector<int64_t>{7});
  NpyArray empty = llvm::cantFail(parseNpy(fileOf(headerOf("<f4", "(0, 4)"), "")));
  EXPECT_EQ(convert(empty, f32).getNumElements(), 0);
}

TEST_F(NpyTest, NarrowFloats) {
  NpyArray bits =
      llvm::cantFail(parseNpy(fileOf(headerOf("<u2", "(2,)"), std::string("\x80\x3f\x00\xc0", 4))));
  EXPECT_EQ(convert(bits, bf16).floats, (std::vector<float>{1, -2}));
  NpyArray half =
      llvm::cantFail(parseNpy(fileOf(headerOf("<f2", "(2,)"), std::string("\x00\x3c\x01\x00", 4))));
  EXPECT_EQ(convert(half, f16).floats, (std::vector<float>{1, 5.9604645e-08f}));
  EXPECT_THAT(conversionError(bits, f32),
              HasSubstr("an array of '<u2' cannot be used as a tensor of f32"));
}

TEST_F(NpyTest, NumbersThatDoNotFit) {
  NpyArray wide = toNpy(Tensor{{2}, i64, {}, {1, int64_t(1) << 40}});
  EXPECT_THAT(conversionError(wide, i32),
              HasSubstr("element 1 is 1099511627776, which does not fit 32 bits"));
  EXPECT_THAT(conversionError(toNpy(Tensor{{1}, i32, {}, {2}}), i1),
              HasSubstr("does not fit 1 bits"));
  EXPECT_THAT(conversionError(toNpy(Tensor{{1}, f32, {2}, {}}), i32),
              HasSubstr("cannot be used as"));
}

TEST_F(NpyTest, HostileFiles) {
  std::string good = fileOf(headerOf("<f4", "(2,)"), std::string(8, '\0'));
  ASSERT_EQ(errorOf(good), "");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(errorOf(good.substr(0, length)), "") << "cut to " << length;
  EXPECT_THAT(errorOf(good + "x"),
              HasSubstr("the shape requires 8 bytes, but 9 follow the header"));
  EXPECT_THAT(errorOf("PK\3\4 a zip archive"), HasSubstr("not a .npy file"));
  EXPECT_THAT(errorOf(std::string("\x93NUMPY\x09\x00\x00\x00", 10)),
              HasSubstr("version 9 of the format is unknown"));
  EXPECT_EQ(errorOf(std::string("\x93NUMPY\x02\x00\x01\x00", 10)), "the header is cut off");
  EXPECT_THAT(errorOf(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              HasSubstr("the header declares 4294967295 bytes, but 0 remain (limit 4096)"));
}

TEST_F(NpyTest, HostileHeaders) {
  auto error = [](const std::string &header) { return errorOf(fileOf(header, "")); };
  EXPECT_THAT(
      error(headerOf("<f8", "(2,)")),
      HasSubstr("elements of type '<f8' are not supported, save <f4, <f2, <u2, <i4, <i8 or |b1"));
  EXPECT_THAT(error(headerOf("|O", "(2,)")), HasSubstr("'|O' are not supported"));
  EXPECT_THAT(error(headerOf("<f4", "(4294967296, 4294967296, 4294967296)")),
              HasSubstr("too many"));
  EXPECT_THAT(error(headerOf("<f4", "(99999999999999999999,)")),
              HasSubstr("a dimension is not a non-negative integer"));
  EXPECT_THAT(error(headerOf("<f4", "(-1,)")), HasSubstr("not a non-negative integer"));
  EXPECT_THAT(error(headerOf("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)")),
              HasSubstr("the rank is above 8"));
  EXPECT_THAT(error(headerOf("<f4", "2")), HasSubstr("shape is not a tuple"));
  EXPECT_THAT(error(headerOf("<f4", "(1 1)")), HasSubstr("no comma between two extents"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }"),
              HasSubstr("the array is not in row-major order, save numpy.ascontiguousarray of it"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': False}"),
              HasSubstr("descr, fortran_order or shape is missing"));
  EXPECT_THAT(error("{'descr': '<f4', 'descr': '<f4'}"),
              HasSubstr("key 'descr' is unknown or there twice"));
  EXPECT_THAT(error("{'descr': '<f4' 'fortran_order': False}"),
              HasSubstr("no comma between two entries"));
  EXPECT_THAT(error("{'evil': 1}"), HasSubstr("'evil'"));
  EXPECT_THAT(error("{'descr"), HasSubstr("an entry is not a key and a value"));
  EXPECT_THAT(error("{'descr': [('a', '<f4')]}"), HasSubstr("descr is not a string"));
  EXPECT_THAT(error("[]"), HasSubstr("malformed header: no dictionary"));
  EXPECT_THAT(error(headerOf("<f4", "(0,)") + "x"), HasSubstr("something after the dictionary"));
}

TEST_F(NpyTest, ErrorsNameTheFile) {
  EXPECT_THAT(llvm::toString(readNpy("/nowhere/x.npy").takeError()), HasSubstr("/nowhere/x.npy: "));
}

} // namespace
