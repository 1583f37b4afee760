//===- Arguments.cpp - random arguments for functions of mica ops ---------===//

#include "tests/unit/backends/cpu/lowering/Arguments.h"

#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include "llvm/ADT/bit.h"

using namespace mlir;

namespace mica::test {

namespace {

/// Cached positions per sequence: none, more than a block of 64, almost a block, few.
constexpr int64_t kDepths[] = {0, 105, 62, 7};
/// A multiple of all block sizes, enough for the longest sequence and a few dozen rows.
constexpr int64_t kPositions = 128;

/// The rows of a batch: runs of consecutive rows of a sequence, as in prompts, and single rows.
struct RaggedBatch {
  std::vector<int64_t> sequences, positions;

  explicit RaggedBatch(int64_t rows) {
    constexpr int64_t lengths[] = {3, 1, 2, 5, 1, 1, 4}, order[] = {1, 0, 2, 3};
    std::vector<int64_t> next(std::begin(kDepths), std::end(kDepths));
    for (size_t run = 0; static_cast<int64_t>(sequences.size()) < rows; ++run)
      for (int64_t i = 0; i < lengths[run % std::size(lengths)]; ++i) {
        sequences.push_back(order[run % std::size(order)]);
        positions.push_back(next[sequences.back()]++);
      }
    sequences.resize(rows);
    positions.resize(rows);
  }
};

std::vector<int64_t> randomIntegers(DictionaryAttr hints, const std::string &name, int64_t count,
                                    int64_t rowSize) {
  std::vector<int64_t> integers;
  auto unit = [](float number) { return (double(number) + 1) / 2; };
  if (auto below = hints.getAs<IntegerAttr>("test.below"))
    for (float number : randomNumbers(name, count))
      integers.push_back(static_cast<int64_t>(unit(number) * double(below.getInt())));
  else if (auto among = hints.getAs<ArrayAttr>("test.among"))
    for (float number : randomNumbers(name, count / rowSize)) {
      auto first = static_cast<int64_t>(unit(number) * double(among.size()));
      for (int64_t i = 0; i < rowSize; ++i)
        integers.push_back(cast<IntegerAttr>(among[(first + i) % among.size()]).getInt());
    }
  else if (hints.contains("test.sequences"))
    integers = RaggedBatch(count).sequences;
  else if (hints.contains("test.positions"))
    integers = RaggedBatch(count).positions;
  else
    llvm::report_fatal_error("an argument of integers does not say what they are");
  return integers;
}

/// A state whose rows are equal if they share a slot, so that it can be the content of a ring.
interp::Value randomRing(SequenceState type, const std::string &name) {
  interp::Value value = interp::Value::makeCache(type, std::size(kDepths), kPositions);
  interp::Cache &cache = *value.getCache()->cache;
  cache.data = randomNumbers(name, cache.data.size());
  cache.isWritten.assign(cache.isWritten.size(), true);
  int64_t size = cache.rowSize();
  for (int64_t part = 0; part < type.getLayers() * cache.batch; ++part)
    for (int64_t position = type.getSlots(); position < kPositions; ++position)
      std::copy_n(cache.data.begin() + (part * kPositions + position % type.getSlots()) * size,
                  size, cache.data.begin() + (part * kPositions + position) * size);
  return value;
}

interp::Value randomCache(KvCacheType type, const std::string &name) {
  interp::Value value = interp::Value::makeCache(type, std::size(kDepths), kPositions);
  interp::Cache &cache = *value.getCache()->cache;
  cache.data = randomNumbers(name, cache.data.size());
  if (type.getElementType().isBF16())
    for (float &number : cache.data)
      number = llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(number) & 0xffff0000);
  auto data = MutableArrayRef(cache.data);
  for (auto rest = data; !rest.empty(); rest = rest.drop_front(type.getHeadDim()))
    interp::roundRow(type.getElementType(), rest.take_front(type.getHeadDim()));
  return value;
}

/// Rows with equal magnitudes. Signs alternate after one element, after two (the elements that a
/// word of a matmul sums), and after four.
void makeExtreme(MutableArrayRef<float> numbers, int64_t rowSize) {
  for (auto [at, number] : llvm::enumerate(numbers)) {
    int64_t row = static_cast<int64_t>(at) / rowSize, i = static_cast<int64_t>(at) % rowSize;
    int64_t turns[] = {0, 1, i, i / 2, i / 4};
    number = turns[row % std::size(turns)] % 2 == 0 ? 0.75f : -0.75f;
  }
}

DictionaryAttr hintsOf(func::FuncOp function, unsigned index) {
  DictionaryAttr hints = function.getArgAttrDict(index);
  return hints ? hints : DictionaryAttr::get(function.getContext());
}

} // namespace

SmallVector<interp::Value> randomArguments(func::FuncOp function, int64_t rows) {
  SmallVector<interp::Value> arguments;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    DictionaryAttr hints = hintsOf(function, index);
    std::string name = (function.getSymName() + ":" + llvm::Twine(index)).str();
    if (auto cache = dyn_cast<KvCacheType>(type)) {
      arguments.push_back(randomCache(cache, name));
      continue;
    }
    if (auto state = dyn_cast<SequenceState>(type)) {
      arguments.push_back(randomRing(state, name));
      continue;
    }
    auto own = hints.getAs<IntegerAttr>("test.rows");
    interp::Tensor tensor = interp::Tensor::zerosOf(type, own ? own.getInt() : rows);
    if (!tensor.isFloat())
      tensor.ints = randomIntegers(hints, name, tensor.getNumElements(), tensor.rowSize());
    else {
      std::vector<float> numbers = randomNumbers(name, tensor.getNumElements());
      if (hints.contains("test.uneven"))
        makeUneven(numbers, tensor.rowSize());
      if (hints.contains("test.extreme"))
        makeExtreme(numbers, tensor.rowSize());
      for (auto [at, number] : llvm::enumerate(numbers))
        tensor.set(at, number);
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

SmallVector<interp::Value> sliceRows(func::FuncOp function, ArrayRef<interp::Value> arguments,
                                     int64_t begin, int64_t end) {
  SmallVector<interp::Value> sliced;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    const interp::Tensor *whole = argument.getTensor();
    if (!whole || hintsOf(function, index).contains("test.rows")) {
      sliced.push_back(argument);
      continue;
    }
    SmallVector<int64_t> shape(whole->shape);
    shape[0] = end - begin;
    interp::Tensor part{shape, whole->elementType, {}, {}};
    int64_t first = begin * whole->rowSize(), last = end * whole->rowSize();
    if (whole->isFloat())
      part.floats.assign(whole->floats.begin() + first, whole->floats.begin() + last);
    else
      part.ints.assign(whole->ints.begin() + first, whole->ints.begin() + last);
    sliced.push_back(std::move(part));
  }
  return sliced;
}

} // namespace mica::test
