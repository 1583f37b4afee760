// Kernels that work row by row: norms, quantization, rope and elementwise ops.
#include "tests/bench/KernelBenchmarks.h"
#include "tests/unit/backends/cpu/lowering/Arguments.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mica::test;

namespace mica::bench {

namespace {
/// Columns of Llama-3.2-1B.
constexpr int64_t columns = 2048;

/// An op over rows, and the bytes that it reads per row.
struct RowOp {
  const char *name, *arguments, *text, *result;
  double bytesPerRow;
  const char *weights = "";
};

#define ROWS "tensor<?x2048xf32>"
#define ONE "%x: " ROWS
#define TWO ONE ", %z: " ROWS
#define HEADS "tensor<?x32x64xf32>"
#define POSITIONS "%p: tensor<?xi32> {test.below = 8192 : i64}"
constexpr RowOp rowOps[] = {
    {"add", TWO, "mica.add %x, %z : " ROWS, ROWS, 8 * columns},
    {"mul", TWO, "mica.mul %x, %z : " ROWS, ROWS, 8 * columns},
    {"silu", ONE, "mica.silu %x : " ROWS, ROWS, 4 * columns},
    {"gelu", ONE, "mica.gelu %x : " ROWS, ROWS, 4 * columns},
    {"gelu_tanh", ONE, "mica.gelu_tanh %x : " ROWS, ROWS, 4 * columns},
    {"relu", ONE, "mica.relu %x : " ROWS, ROWS, 4 * columns},
    {"relu2", ONE, "mica.relu2 %x : " ROWS, ROWS, 4 * columns},
    {"quick_gelu", ONE, "mica.quick_gelu %x : " ROWS, ROWS, 4 * columns},
    {"scale", ONE, "mica.scale %x by(0.7) : " ROWS, ROWS, 4 * columns},
    {"softcap", ONE, "mica.softcap %x at(30.0) : " ROWS, ROWS, 4 * columns},
    {"sigmoid_gate", ONE ", %g: tensor<?x1xf32>",
     "mica.sigmoid_gate %x, %g : " ROWS ", tensor<?x1xf32>", ROWS, 4 * columns + 4},
    {"scale_parts", ONE, "mica.scale_parts %x by([0.25, 1.5]) widths([1500, 548]) : " ROWS, ROWS,
     4 * columns},
    {"sigmoid", ONE, "mica.sigmoid %x : " ROWS, ROWS, 4 * columns},
    {"l2norm/heads", "%x: " HEADS, "mica.l2norm %x eps(1.0e-06) : " HEADS, HEADS, 4 * columns},
    {"scale_heads", "%x: " HEADS ", %f: tensor<?x32xf32>",
     "mica.scale_heads %x by(%f) : " HEADS ", tensor<?x32xf32>", HEADS, 4 * (columns + 32)},
    {"scale_heads/weight", "%x: " HEADS, "mica.scale_heads %x by(%g) : " HEADS ", tensor<32xf32>",
     HEADS, 4 * columns, "32"},
    {"softplus", ONE, "mica.softplus %x bias(%g) : " ROWS ", tensor<2048xf32>", ROWS, 4 * columns,
     "2048"},
    {"decay", ONE, "mica.decay %x, %g : " ROWS ", tensor<2048xf32>", ROWS, 4 * columns, "2048"},
    {"cast", ONE, "mica.cast %x : " ROWS " to tensor<?x2048xbf16>", "tensor<?x2048xbf16>",
     4 * columns},
    {"quantize/int8", ONE,
     "mica.cast %x : " ROWS " to tensor<?x2048x!mica.int_rows<bits = 8, group = 32>>",
     "tensor<?x2048x!mica.int_rows<bits = 8, group = 32>>", 4 * columns},
    {"quantize/int16", ONE,
     "mica.cast %x : " ROWS " to tensor<?x2048x!mica.int_rows<bits = 16, group = 32>>",
     "tensor<?x2048x!mica.int_rows<bits = 16, group = 32>>", 4 * columns},
    {"select_rows", "%r: tensor<?xi32> {test.below = 512 : i64}, " ONE " {test.rows = 512 : i64}",
     "mica.select_rows %x, %r : " ROWS ", tensor<?xi32>"
     " -> " ROWS,
     ROWS, 4 * columns},
    {"select_head", "%x: " HEADS, "mica.select_head %x[%i] : " HEADS " -> tensor<?x64xf32>",
     "tensor<?x64xf32>", 4 * 64},
    {"concat_heads", "%a: tensor<?x16x128xf32>, %b: tensor<?x1x64xf32>",
     "mica.concat_heads %a, %b : tensor<?x16x128xf32>, tensor<?x1x64xf32> -> tensor<?x16x192xf32>",
     "tensor<?x16x192xf32>", 4 * (16 * 128 + 64)},
    {"rope", "%x: " HEADS ", " POSITIONS,
     "mica.rope %x, %p half theta(5.0e+05) rotary_dim(64) : " HEADS ", tensor<?xi32>", HEADS,
     4 * columns},
    {"rope_table", POSITIONS,
     "mica.rope_table %p rotary_dim(64) theta(5.0e+05) : tensor<?xi32> -> tensor<?x2x32xf32>",
     "tensor<?x2x32xf32>", 4},
    {"sinusoid", POSITIONS, "mica.sinusoid %p offset(2) : tensor<?xi32> -> " ROWS, ROWS, 4},
    {"rmsnorm/heads", "%x: " HEADS,
     "mica.rmsnorm %x, %g eps(1.0e-05) : " HEADS ", tensor<64xf32> -> " HEADS, HEADS, 4 * columns,
     "64"},
};

KernelBenchmark overRows(const std::string &name, const RowOp &op, const std::string &format) {
  KernelBenchmark made;
  made.name = name;
  made.format = format;
  Words words = {
      {"arguments", op.arguments}, {"text", op.text}, {"result", op.result}, {"N", op.weights}};
  made.text = fill(*op.weights ? R"(
  mica.weight @g : tensor<{N}xf32>
  mica.weight @b : tensor<{N}xf32>
  func.func @f0({arguments}) -> {result} {
    %g = mica.get_weight @g : tensor<{N}xf32>
    %b = mica.get_weight @b : tensor<{N}xf32>
    %y = {text}
    return %y : {result}
  })"
                               : R"(
  func.func @f0({arguments}) -> {result} {
    %i = arith.constant 1 : index
    %y = {text}
    return %y : {result}
  })",
                   words);
  double bytes = op.bytesPerRow;
  made.rows = ArrayRef(cachedAndOther).vec();
  // The results of an op over positions are not cached.
  made.calls = [=](int64_t) {
    return copiesOf(std::max(bytes, 4.0 * columns) * double(ArrayRef(cachedAndOther).back()));
  };
  made.arguments = randomArguments;
  made.work = [=](double, int64_t rows) { return Work{bytes * double(rows), 0}; };
  return made;
}

/// A norm whose results are rounded to the activation type of matmuls.
KernelBenchmark norm(const Format &format, const char *name, const char *options) {
  Words words = evenWordsOf(format);
  words.emplace_back("op", name);
  std::string text = fill(std::string("mica.{op} %x, %g ") + options +
                              " : " ROWS ", tensor<2048xf32> -> tensor<?x2048x{rows}>",
                          words),
              result = fill("tensor<?x2048x{rows}>", words);
  RowOp op{"", ONE, text.c_str(), result.c_str(), 4 * columns, "2048"};
  return overRows(fill("{op}/{format}/2048", words), op, peaksOf(format));
}
} // namespace

std::vector<KernelBenchmark> rowBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (const RowOp &op : rowOps)
    all.push_back(overRows(op.name, op, "f32"));
  llvm::StringSet<> types;
  for (const Format &format : allFormats()) {
    // One for each activation type.
    if (!types.insert(format.rows).second)
      continue;
    all.push_back(norm(format, "rmsnorm", "eps(1.0e-05)"));
    all.push_back(norm(format, "layernorm", "bias(%b : tensor<2048xf32>) eps(1.0e-05)"));
  }
  return all;
}

} // namespace mica::bench
