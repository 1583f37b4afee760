//===- BlocksTest.cpp - matmuls with block-quantized weights --------------===//
//
// Activations are cast, or are an argument that is already rounded. Tolerances are those of matmuls
// of the same rows with unquantized weights: blocks are dequantized to the same f32 numbers as in
// the interpreter, sums of integers are exact, and only additions of f32 remain. Offsets are summed
// separately from the levels; both sums are about twice as large as the result.
//
//===----------------------------------------------------------------------===//

#include "ir/Quantize/Quantize.h"
#include "tests/unit/RandomBlocks.h"
#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// Whether float kernels differ from those of "native": other targets are tested with integer
/// activations only.
bool hasOwnFloats(const std::string &target) {
  return llvm::is_contained({"native", "x86-64-v3", "x86-64-v4"}, target);
}

Tolerance doubled(Tolerance tolerance) {
  return {2 * tolerance.max, 2 * tolerance.usual, tolerance.size};
}

struct Shape;

/// A target and a format.
using Param = std::pair<std::string, const BlockFormat *>;

/// The formats whose kernels are compiled for a target. This machine has every format. With narrow
/// vectors and without dot products, kernels depend on the bits of a level, its bias and the groups
/// of a chunk: there is a format for each combination. Other targets have the formats that differ
/// in their byte operands: signed bytes, offsets of groups of 16, a table.
std::vector<const BlockFormat *> formatsOf(llvm::StringRef target) {
  static constexpr std::string_view kFields[] = {"q4_0",   "q5_0",  "q5_1",    "q8_0",
                                                 "q2_k",   "q3_k",  "q4_k",    "q6_k",
                                                 "iq4_xs", "mxfp4", "int4_g32"},
                                    kBytes[] = {"q8_0", "q2_k", "iq4_xs"};
  if (target == "native")
    return allBlockFormats();
  auto names = target == "x86-64-v3" ? llvm::ArrayRef(kFields) : llvm::ArrayRef(kBytes);
  std::vector<const BlockFormat *> formats;
  for (std::string_view name : names)
    formats.push_back(blockFormatNamed(name));
  return formats;
}

std::vector<Param> allParams() {
  std::vector<Param> all;
  for (const std::string &target : integerTargets())
    for (const BlockFormat *format : formatsOf(target))
      all.emplace_back(target, format);
  return all;
}

class BlockKernelTest : public KernelChecks, public testing::WithParamInterface<Param> {
protected:
  /// An activation type, and a number that is unique for each type and format.
  struct Kind {
    const BlockRows &rows;
    size_t number;
  };

  std::vector<Kind> kinds() const {
    std::vector<Kind> all;
    size_t first = llvm::find(allBlockFormats(), &format) - allBlockFormats().begin();
    for (const BlockRows &rows : kBlockRows)
      if (llvm::StringRef(rows.rows).starts_with("!") || hasOwnFloats(target))
        all.push_back({rows, first + all.size()});
    return all;
  }

  std::string typeOf(const BlockFormat &of) const {
    return "!mica.block<" + std::string(of.name) + ">";
  }

  /// The placeholders of a format and an activation type, except for sizes.
  Words words(const BlockRows &rows) const {
    std::string weight = typeOf(format), name = std::string(format.name) + "_" + rows.name;
    return wordsOf({name.c_str(), rows.argument, rows.rows, weight.c_str(), rows.rounded});
  }

  /// A case with many rows: blocks are expanded for 64 prefill rows together.
  void add(const char *name, const char *text, const BlockRows &rows, const Words &sizes,
           const Tolerance &tolerance) {
    Words all = words(rows);
    llvm::append_range(all, sizes);
    cases.push_back(makeCase(name, text, all, tolerance));
    cases.back().maxRows = 70;
  }

  int64_t columnsOf(const Shape &shape) const;

  void check() { KernelChecks::check(target, cases); }

  std::string target = GetParam().first;
  const BlockFormat &format = *GetParam().second;
  std::vector<KernelCase> cases;
};

std::string nameOf(const testing::TestParamInfo<Param> &info) {
  std::string name = info.param.first + "_" + std::string(info.param.second->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(On, BlockKernelTest, testing::ValuesIn(allParams()), nameOf);

/// Every format, for this machine and for narrow vectors without dot products.
class ExtremeKernelTest : public BlockKernelTest {
protected:
  /// Describes the first element of row `row` of a matrix whose code is not extremeCode().
  std::string findModerateCode(int64_t row) const {
    std::vector<uint8_t> block(format.bytes);
    if (format.isOwn) {
      std::vector<float> numbers = extremeNumbers(format, format.elements, row);
      EXPECT_TRUE(quantizeBlocks(format, numbers, {}, block));
    } else {
      block = extremeBlocks(format, 1, row);
    }
    BlockParts parts{};
    splitBlock(format, block.data(), parts);
    for (int i = 0; i < format.elements; ++i)
      if (parts.codes[i] != extremeCode(format, row, i) && !(format.isOwn && i % 32 < 4))
        return "element " + std::to_string(i) + " has code " + std::to_string(parts.codes[i]);
    return "";
  }
};

std::vector<Param> paramsOfExtremes() {
  std::vector<Param> all;
  for (const std::string &target : runnableTargets({"native", "x86-64-v3"}))
    for (const BlockFormat *format : allBlockFormats())
      all.emplace_back(target, format);
  return all;
}

INSTANTIATE_TEST_SUITE_P(On, ExtremeKernelTest, testing::ValuesIn(paramsOfExtremes()), nameOf);

/// Matmuls by oneDNN, whose kernels are those of this machine.
class LibraryKernelTest : public BlockKernelTest {};

std::vector<Param> paramsOfThisMachine() {
  std::vector<Param> all;
  llvm::copy_if(allParams(), std::back_inserter(all),
                [](const Param &param) { return param.first == "native"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(On, LibraryKernelTest, testing::ValuesIn(paramsOfThisMachine()), nameOf);

/// Numbers of columns: less than a vector, a vector, a block of 64 and one more, several blocks;
/// and numbers of blocks along K.
struct Shape {
  int n, blocks;
};
constexpr Shape kShapes[] = {{65, 1}, {17, 2}, {1, 3}, {130, 9}};

/// The last block of Mica's own formats is incomplete, and so is its last chunk.
int64_t BlockKernelTest::columnsOf(const Shape &shape) const {
  return shape.blocks * format.elements - (format.isOwn ? 37 : 0);
}

TEST_P(BlockKernelTest, Linear) {
  // A second shape on targets with every format.
  llvm::SmallVector<size_t> shapes{0};
  if (target == "native")
    shapes.push_back(2);
  for (const Kind &kind : kinds())
    for (size_t next : shapes) {
      Shape shape = kShapes[(kind.number + next) % std::size(kShapes)];
      int64_t k = columnsOf(shape);
      Tolerance tolerance = doubled(toleranceOfProduct(k));
      tolerance.addend = 1;
      add("linear_{format}_{N}x{K}", kLinear, kind.rows,
          {{"operands", kBiasAndResidual}, {"N", shape.n}, {"K", k}}, tolerance);
    }
  check();
}

/// Codes that are all the maximum, all the minimum or both alternately, times rows with equal
/// magnitudes: no sum of integers is larger, and the words in which bytes are summed have a margin
/// of 1 to 7 %.
TEST_P(ExtremeKernelTest, Linear) {
  for (int64_t row = 0; row < kExtremeKinds; ++row)
    EXPECT_EQ(findModerateCode(row), "");
  for (const BlockRows &rows : kBlockRows)
    if (llvm::StringRef(rows.rows).starts_with("!"))
      add("extreme_{format}", R"(
  mica.weight @{name}.w {test.extreme} : tensor<{N}x{K}x{weight}>
  func.func @{name}(%a: tensor<?x{K}x{argument}> {test.extreme}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{N}x{K}x{weight}>
    %y = mica.linear %x, %w : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
          rows, {{"N", 66}, {"K", 2 * format.elements}},
          doubled(toleranceOfProduct(2 * format.elements)));
  for (KernelCase &row : cases)
    row.maxRows = 33;
  check();
}

TEST_P(BlockKernelTest, GatedLinear) {
  for (const Kind &kind : kinds()) {
    Shape shape = kShapes[(kind.number + 1) % std::size(kShapes)];
    int64_t k = columnsOf(shape);
    add("gated_{format}_{N}x{K}", R"(
  mica.weight @{name}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w relu : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
        kind.rows, {{"N", shape.n}, {"both", 2 * roundUp(shape.n, kBlockColumns)}, {"K", k}},
        doubled(toleranceOfGatedProduct(k)));
  }
  check();
}

/// A matmul per head; and an embedding that is also used for the logits. The rows of the embedding
/// are bit-identical to decodeBlock, for every activation type.
TEST_P(BlockKernelTest, HeadsAndTables) {
  constexpr int kHeads = 3;
  Words sizes = {{"V", 97}, {"K", 2 * format.elements}};
  add("table_{format}", R"(
  mica.weight @{name}.w : tensor<{V}x{K}x{weight}>
  func.func @{name}(%tokens: tensor<?xi32> {test.below = {V} : i64}) -> tensor<?x{K}xf32> {
    %w = mica.get_weight @{name}.w : tensor<{V}x{K}x{weight}>
    %y = mica.embedding %tokens, %w : tensor<?xi32>, tensor<{V}x{K}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
      kBlockRows[0], sizes, 0);
  std::string table = cases.front().name;
  for (const Kind &kind : kinds()) {
    Words ofHead = sizes;
    ofHead.emplace_back("table", table);
    add("lm_head_{format}", R"(
  func.func @{name}({take}) -> tensor<?x{V}xf32> {
    {cast}
    %w = mica.get_weight @{table}.w : tensor<{V}x{K}x{weight}>
    %y = mica.lm_head %x, %w : tensor<?x{K}x{rows}>, tensor<{V}x{K}x{weight}> -> tensor<?x{V}xf32>
    return %y : tensor<?x{V}xf32>
  })",
        kind.rows, ofHead, doubled(toleranceOfProduct(2 * format.elements)));
    int n = kind.number % 2 ? 24 : 1;
    add("head_linear_{format}_{N}", kHeadLinear, kind.rows,
        {{"K", "{H}x{D}"}, {"N", n}, {"H", kHeads}, {"D", format.elements}},
        doubled(toleranceOfProduct(format.elements)));
  }
  check();
}

/// Experts whose last matmul has another format; one expert has no rows. Inner rows are rounded
/// between their matmuls, where the last bit of f32 may change the result.
TEST_P(BlockKernelTest, Experts) {
  std::vector<const BlockFormat *> formats = allBlockFormats();
  size_t number = llvm::find(formats, &format) - formats.begin();
  const BlockFormat &down = *formats[(number + 5) % formats.size()];
  int inner = down.elements == 32 ? 96 : 256;
  for (const Kind &kind : kinds()) {
    Tolerance tolerance = kind.rows.rounded;
    if (llvm::StringRef(kind.rows.rows) == "f32")
      tolerance = doubled(toleranceOfGatedProduct(256));
    add("experts_{format}", R"(
  mica.weight @{name}.up from ["{name}.g0", "{name}.u0", "{name}.g1", "{name}.u1", "{name}.g2", "{name}.u2"] stack parts(2) {test.rows = {inner} : i64}
      : tensor<3x{both}x{K}x{weight}>
  mica.weight @{name}.down from ["{name}.d0", "{name}.d1", "{name}.d2"] stack : tensor<3x{K}x{inner}x{down}>
  func.func @{name}({take}, %w: tensor<?x2xf32>, %e: tensor<?x2xi32> {test.among = [2, 0]}, %r: tensor<?x{K}xf32>) -> tensor<?x{K}xf32> {
    {cast}
    %up = mica.get_weight @{name}.up : tensor<3x{both}x{K}x{weight}>
    %down = mica.get_weight @{name}.down : tensor<3x{K}x{inner}x{down}>
    %y = mica.moe_experts %x, %w, %e, %up, %down residual(%r : tensor<?x{K}xf32>) relu inner({inner}) : tensor<?x{K}x{rows}>, tensor<?x2xf32>,
        tensor<?x2xi32>, tensor<3x{both}x{K}x{weight}>, tensor<3x{K}x{inner}x{down}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
        kind.rows,
        {{"both", 2 * roundUp(inner, kBlockColumns)},
         {"inner", inner},
         {"down", typeOf(down)},
         {"K", format.elements}},
        tolerance);
  }
  check();
}

/// Blocks that are expanded for oneDNN, in panels of 1024 columns: an incomplete one, and several.
/// Generated kernels, which expand them for fewer rows, add in the same order.
TEST_P(LibraryKernelTest, Products) {
  cpu::TargetDescription native = llvm::cantFail(cpu::describeTarget("native"));
  if (native.vectorBits != 512)
    GTEST_SKIP() << "oneDNN's blocked kernels need AVX-512";
  for (const BlockRows &rows : kBlockRows) {
    bool isBf16 = llvm::StringRef(rows.rows) == "bf16";
    if (llvm::StringRef(rows.rows).starts_with("!") || (isBf16 && !native.bf16Dot))
      continue;
    int n = isBf16 ? 2100 : 65, k = format.elements * (isBf16 ? 1 : 3);
    add("library_{format}_{N}x{K}", kLinear, rows,
        {{"operands", kBiasAndResidual + std::string(" kernel(onednn)")}, {"N", n}, {"K", k}},
        toleranceOfProduct(k));
    add("library_gated_{format}_{N}x{K}", R"(
  mica.weight @{name}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w silu kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
        rows, {{"N", 67}, {"both", 256}, {"K", k}}, toleranceOfGatedProduct(k));
    int deep = 1280;
    add("segments_{format}_{K}", R"(
  mica.weight @{name}.w : tensor<{N}x{K}x{weight}>
  func.func @{name}({take}) -> (tensor<?x{N}xf32>, tensor<?x{N}xf32>) {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{N}x{K}x{weight}>
    %y = mica.linear %x, %w kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    %z = mica.linear %x, %w kernel(generated) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y, %z : tensor<?x{N}xf32>, tensor<?x{N}xf32>
  })",
        rows, {{"N", 67}, {"K", deep}}, toleranceOfProduct(deep));
    cases.back().equalResults = true;
  }
  for (KernelCase &row : cases) {
    row.exactRows = !native.tiles && !row.equalResults; // a single row with a large K in oneDNN, or
                                                        // any row with AMX
    row.tolerance.max = 1e-5;
  }
  check();
}

/// Code that computes quantized rows: %q from the argument %x: tensor<?x{K}x{given}>.
struct Maker {
  const char *name, *given, *text;
  bool isExact; ///< whether the numbers before rounding equal the interpreter's
};
constexpr Maker kMakers[] = {
    {"cast", "f32", "%q = mica.cast %x : tensor<?x{K}xf32> to tensor<?x{K}x{rows}>", true},
    {"narrow", "bf16", "%q = mica.cast %x : tensor<?x{K}xbf16> to tensor<?x{K}x{rows}>", true},
    {"rmsnorm", "f32", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %q = mica.rmsnorm %x, %g eps(1.0e-03) weight_offset(1.0) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x{rows}>)",
     false},
    {"layernorm", "f32", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %b = mica.get_weight @{name}.b : tensor<{K}xf32>
    %q = mica.layernorm %x, %g bias(%b : tensor<{K}xf32>) eps(1.0e-03)
        : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x{rows}>)",
     false},
};

/// Every kernel that writes quantized rows, and one that reads them: integers, scales, and sums,
/// which only weights with offsets or a bias read. Groups with and without pairs.
TEST_P(IntegerKernelTest, QuantizationOfActivations) {
  std::vector<KernelCase> cases;
  for (const BlockRows &rows : kBlockRows)
    for (const Maker &maker : kMakers)
      for (int k : {32, 96, 160}) {
        if (!llvm::StringRef(rows.rows).starts_with("!"))
          continue;
        Words words = {{"of", rows.name},      {"maker", maker.name}, {"make", maker.text},
                       {"given", maker.given}, {"rows", rows.rows},   {"K", k}};
        std::string name = fill("rows_{of}_{maker}_{K}", words);
        words.emplace_back("name", name);
        cases.push_back(makeCase(name, R"(
  mica.weight @{name}.w : tensor<21x{K}x!mica.block<q4_1>>
  mica.weight @{name}.g : tensor<{K}xf32>
  mica.weight @{name}.b : tensor<{K}xf32>
  func.func @{name}(%x: tensor<?x{K}x{given}> {test.uneven}) -> tensor<?x21xf32> {
    {make}
    %w = mica.get_weight @{name}.w : tensor<21x{K}x!mica.block<q4_1>>
    %y = mica.linear %q, %w : tensor<?x{K}x{rows}>, tensor<21x{K}x!mica.block<q4_1>> -> tensor<?x21xf32>
    return %y : tensor<?x21xf32>
  })",
                                 words,
                                 maker.isExact ? doubled(toleranceOfProduct(k)) : rows.rounded));
      }
  check(cases);
}

} // namespace
