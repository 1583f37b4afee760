//===- KernelTest.cpp - kernels compared with the interpreter -------------===//

#include "tests/unit/backends/cpu/lowering/KernelTest.h"

#include "tests/unit/backends/cpu/lowering/Arguments.h"
#include "tests/unit/backends/cpu/lowering/TaskCuts.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;

namespace mica::test {

/// Tiles of 6, 4, 2 and 1 rows with their remainders, and more than one group of 16.
/// checkCutsOfRows tests other numbers of rows.
static constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 33};

KernelCase makeCase(std::string name, std::string text, const Words &words, Tolerance tolerance) {
  name = fill(std::move(name), words);
  text = fill(fill(std::move(text), {{"name", name}}), words);
  return {std::move(name), std::move(text), tolerance};
}

/// One unit in the last place of `value` as bf16.
static double ulpOf(float value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, exponent - 8);
}

/// The maximum of each row of the uneven arguments; empty if there are none.
static std::vector<double> sizesOfRows(func::FuncOp function, ArrayRef<interp::Value> arguments) {
  std::vector<double> sizes;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    if (!function.getArgAttr(index, "test.uneven"))
      continue;
    const interp::Tensor &tensor = *argument.getTensor();
    sizes.resize(tensor.shape[0]);
    for (auto [at, number] : llvm::enumerate(tensor.floats)) {
      double &size = sizes[static_cast<int64_t>(at) / tensor.rowSize()];
      size = std::max(size, std::abs(double(number)));
    }
  }
  return sizes;
}

/// Describes the element with the largest error, if it exceeds the tolerance. Rows with different
/// magnitudes are compared one by one.
static std::string findDifference(const interp::Value &actual, const interp::Value &expected,
                                  const Tolerance &tolerance, std::vector<double> sizes) {
  interp::Value a = actual.flattened(), b = expected.flattened();
  const interp::Tensor &as = *a.getTensor(), &bs = *b.getTensor();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (as.shape != bs.shape || as.elementType != bs.elementType)
    os << "the shapes differ";
  else if (!as.isFloat() && as.ints != bs.ints)
    os << "the integers differ";
  if (!text.empty() || !as.isFloat())
    return text;
  // Subnormal numbers have few digits.
  constexpr double normal = std::numeric_limits<float>::min();
  double subnormal = sizes.empty() ? 0 : normal;
  if (bs.shape[0] != static_cast<int64_t>(sizes.size()))
    sizes = {1.0};
  size_t length = bs.floats.size() / sizes.size();
  double worst = 0, squares = 0, largest = 0;
  for (auto [index, x, y] : llvm::enumerate(as.floats, bs.floats)) {
    if (index % length == 0) {
      largest = std::max({tolerance.size * sizes[index / length], tolerance.addend, normal});
      for (float value : ArrayRef(bs.floats).slice(index, length))
        largest = std::max(largest, std::abs(double(value)));
    }
    double ulp = bs.elementType.isBF16() ? ulpOf(y) : subnormal,
           off = std::abs(double(x) - double(y)), share = off / largest,
           allowed = tolerance.max + ulp / largest, beyond = std::max(off - ulp, 0.0) / largest;
    squares += beyond * beyond;
    // Comparisons with NaN are false.
    if (share <= allowed || (share - allowed <= worst && !text.empty()))
      continue;
    worst = share - allowed;
    text.clear();
    os << "element " << index << " is " << llvm::format("%.9g", x) << " instead of "
       << llvm::format("%.9g", y) << ", off by "
       << llvm::format("%.3g of %.3g allowed", share, allowed);
  }
  // An integer of a row that is rounded differently changes all results of the row, so the average
  // of a few rows varies.
  constexpr int64_t rowsOfAnAverage = 15;
  double usual = std::sqrt(squares / double(bs.floats.size()));
  if (text.empty() && bs.shape[0] >= rowsOfAnAverage && usual > tolerance.usual)
    os << "elements are off by "
       << llvm::format("%.3g of %.3g allowed on average", usual, tolerance.usual);
  return text;
}

static uint32_t bitsOf(float value) { return llvm::bit_cast<uint32_t>(value); }

/// Whether all bits are equal.
static bool areSame(ArrayRef<interp::Value> a, ArrayRef<interp::Value> b) {
  return llvm::equal(a, b, [](const interp::Value &left, const interp::Value &right) {
    interp::Value x = left.flattened(), y = right.flattened();
    return x.getTensor()->ints == y.getTensor()->ints &&
           llvm::equal(x.getTensor()->floats, y.getTensor()->floats,
                       [](float p, float q) { return bitsOf(p) == bitsOf(q); });
  });
}

/// The rows of both, concatenated.
static interp::Tensor joinRows(const interp::Tensor &first, const interp::Tensor &second) {
  interp::Tensor joined = first;
  joined.shape[0] += second.shape[0];
  llvm::append_range(joined.floats, second.floats);
  llvm::append_range(joined.ints, second.ints);
  return joined;
}

void KernelChecks::check(StringRef targetName, ArrayRef<KernelCase> cases) {
  if (cases.empty())
    GTEST_SKIP() << "this machine has no such kernels";
  std::string text;
  for (const KernelCase &row : cases)
    text += row.text;
  auto target = describeTestTarget(targetName.str());
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  auto compiled = KernelModule::compile(text, *target, cuttingRuntime, /*unevenWeights=*/true);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  module = std::move(*compiled);
  for (const KernelCase &row : cases) {
    SCOPED_TRACE(row.name);
    checkNumbers(row);
    if (row.exactRows)
      checkCutsOfRows(row);
    checkCutsOfTasks(row);
  }
}

SmallVector<interp::Value> KernelChecks::run(const KernelCase &row,
                                             ArrayRef<interp::Value> arguments) {
  KernelCall call = module->prepare(row.name, arguments);
  call();
  EXPECT_EQ(call.findDamage(), "");
  return call.getResults();
}

/// The state `after` that a step computes from `before`, whose slots are equal, as stored in a
/// ring: each slot contains the last row written to it.
static interp::Value foldedIntoRing(const interp::Value &after, const interp::Value &before) {
  interp::Value result = after.clone();
  interp::Cache &cache = *result.getCache()->cache;
  ArrayRef<float> old = before.getCache()->cache->data, made = after.getCache()->cache->data;
  int64_t size = cache.rowSize(), slots = cache.type.getSlots();
  auto data = MutableArrayRef(cache.data);
  for (int64_t part = 0; part < cache.type.getLayers() * cache.batch; ++part)
    for (int64_t position = 0; position < cache.positions; ++position) {
      int64_t row = (part * cache.positions + position) * size;
      if (made.slice(row, size) == old.slice(row, size))
        continue;
      for (int64_t other = position % slots; other < cache.positions; other += slots)
        llvm::copy(made.slice(row, size), data.begin() + (part * cache.positions + other) * size);
    }
  return result;
}

void KernelChecks::checkNumbers(const KernelCase &row) {
  func::FuncOp function = module->getFunction(row.name);
  // An odd number of tiles of 16 rows, and the start over after 256 rows.
  static constexpr int64_t kLargeBatches[] = {1, 5, 16, 17, 48, 256, 273};
  SmallVector<int64_t> numbers(row.largeBatch ? ArrayRef(kLargeBatches) : ArrayRef(kRows));
  if (!row.largeBatch && row.maxRows != numbers.back())
    numbers.push_back(row.maxRows);
  for (int64_t rows : numbers) {
    SmallVector<interp::Value> arguments = randomArguments(function, rows);
    auto expected = module->interpret(row.name, arguments);
    ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
    SmallVector<interp::Value> actual = run(row, arguments);
    ASSERT_EQ(actual.size(), expected->size());
    for (interp::Value &value : *expected)
      if (const interp::CacheVersion *state = value.getCache();
          state && state->cache->type.getSlots() > 0)
        value = foldedIntoRing(value, arguments.back());
    for (auto [index, a, b] : llvm::enumerate(actual, *expected))
      EXPECT_EQ(findDifference(a, b, row.tolerance, sizesOfRows(function, arguments)), "")
          << "result " << index << " of " << rows << " rows";
    if (row.equalResults && rows > 1)
      for (const interp::Value &other : ArrayRef(actual).drop_front())
        EXPECT_TRUE(areSame(actual.front(), other)) << "results of " << rows << " rows";
  }
}

/// A step with all rows equals a step with the first rows followed by one with the rest.
void KernelChecks::checkCutsOfRows(const KernelCase &row) {
  // Every number of rows below `maxRows` occurs in both steps.
  int64_t all = row.largeBatch ? 290 : row.maxRows, stride = row.largeBatch ? 16 : 1;
  func::FuncOp function = module->getFunction(row.name);
  SmallVector<interp::Value> arguments = randomArguments(function, all),
                             expected = run(row, arguments);
  auto isCache = [](const interp::Value &value) { return value.getCache() != nullptr; };
  for (int64_t cut = 1; cut <= all / 2; cut += stride) {
    SmallVector<interp::Value> first = run(row, sliceRows(function, arguments, 0, cut)),
                               rest = sliceRows(function, arguments, cut, all);
    // The second step continues with the caches of the first one.
    auto caches = llvm::make_filter_range(first, isCache);
    for (auto [cache, argument] : llvm::zip(caches, llvm::make_filter_range(rest, isCache)))
      argument = cache;
    SmallVector<interp::Value> second = run(row, rest);
    for (auto [before, after] : llvm::zip_equal(first, second))
      if (!isCache(before))
        after = joinRows(*before.getTensor(), *after.getTensor());
    EXPECT_TRUE(areSame(second, expected)) << "cut after row " << cut;
  }
}

void KernelChecks::checkCutsOfTasks(const KernelCase &row) {
  static constexpr int64_t kSmall[] = {17}, kLarge[] = {5, 273};
  for (int64_t rows : row.largeBatch ? ArrayRef(kLarge) : ArrayRef(kSmall))
    checkCutsOfTasks(row, rows);
}

void KernelChecks::checkCutsOfTasks(const KernelCase &row, int64_t rows) {
  SmallVector<interp::Value> arguments = randomArguments(module->getFunction(row.name), rows),
                             expected = run(row, arguments);
  const std::pair<const char *, TaskCut> cuts[] = {{"two parts", inParts(2)},
                                                   {"three parts", inParts(3)},
                                                   {"one by one", oneByOne()},
                                                   {"two threads", onPool(2)}};
  for (const auto &[name, cut] : cuts) {
    setTaskCut(cut);
    EXPECT_TRUE(areSame(run(row, arguments), expected))
        << "tasks of " << rows << " rows cut: " << name;
  }
  setTaskCut(inOnePart());
}

static std::string nameOfTarget(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The features of this machine; wide vectors without dot products; the minimum for programs.
INSTANTIATE_TEST_SUITE_P(On, KernelTest,
                         testing::ValuesIn(runnableTargets({"native", "x86-64-v3", "x86-64-v4"})),
                         nameOfTarget);

// The same, and int8 dot products without AMX tiles in 512-bit and 256-bit vectors (in either
// encoding).
std::vector<std::string> integerTargets() {
  return runnableTargets(
      {"native", "x86-64-v3", "x86-64-v4", "cooperlake", "alderlake", "cooperlake-256"});
}

INSTANTIATE_TEST_SUITE_P(On, IntegerKernelTest, testing::ValuesIn(integerTargets()), nameOfTarget);

} // namespace mica::test
