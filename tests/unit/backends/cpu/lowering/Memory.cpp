//===- Memory.cpp - values as compiled programs hold them -----------------===//

#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstring>
#include <sys/mman.h>

using namespace mlir;

namespace mica::test {

static constexpr size_t kPage = 4096;

GuardedMemory::GuardedMemory(size_t size, size_t alignment) : size(size) {
  size_t used = roundUp(roundUp(size, alignment), kPage);
  mapped = used + kPage;
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<uint8_t *>(memory) + used, kPage, PROT_NONE))
    llvm::report_fatal_error("no memory for a test's buffer");
  mapping = static_cast<uint8_t *>(memory);
  start = mapping + used - roundUp(size, alignment);
  std::memset(mapping, 0xff, used);
}

GuardedMemory::GuardedMemory(GuardedMemory &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)), start(other.start), mapped(other.mapped),
      size(other.size) {}

GuardedMemory::~GuardedMemory() {
  if (mapping)
    munmap(mapping, mapped);
}

bool GuardedMemory::isIntactAround() const {
  auto isUntouched = [](uint8_t byte) { return byte == 0xff; };
  return std::all_of(mapping, start, isUntouched) &&
         std::all_of(start + size, mapping + mapped - kPage, isUntouched);
}

void GuardedMemory::protect() {
  if (mprotect(mapping, mapped - kPage, PROT_READ))
    llvm::report_fatal_error("a test's buffer cannot be protected");
}

static size_t sizeOf(Type elementType) { return elementType.getIntOrFloatBitWidth() / 8; }

size_t bytesOf(Type elementType, ArrayRef<int64_t> shape) {
  return ShapedType::getNumElements(shape) * sizeOf(elementType);
}

namespace {
/// Floats of f32 or bf16 in memory. Exact, because the interpreter's floats are rounded.
class Floats {
public:
  Floats(Type type, const uint8_t *bytes) : size(sizeOf(type)), bytes(bytes) {}

  float load(int64_t index) const {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes + index * size, size);
    return llvm::bit_cast<float>(size == 2 ? bits << 16 : bits);
  }

  void store(int64_t index, float value) const {
    uint32_t bits = llvm::bit_cast<uint32_t>(value);
    if (size == 2)
      bits >>= 16;
    std::memcpy(const_cast<uint8_t *>(bytes) + index * size, &bits, size);
  }

private:
  size_t size;
  const uint8_t *bytes;
};
} // namespace

void storeTensor(const interp::Tensor &tensor, MutableArrayRef<uint8_t> bytes) {
  Floats floats(tensor.elementType, bytes.data());
  for (auto [index, value] : llvm::enumerate(tensor.floats))
    floats.store(index, value);
  for (auto [index, value] : llvm::enumerate(tensor.ints)) {
    auto narrow = static_cast<int32_t>(value);
    std::memcpy(bytes.data() + index * sizeof(narrow), &narrow, sizeof(narrow));
  }
}

interp::Tensor loadTensor(Type elementType, ArrayRef<int64_t> shape, ArrayRef<uint8_t> bytes) {
  interp::Tensor tensor = interp::Tensor::zeros(elementType, shape);
  Floats floats(elementType, bytes.data());
  for (auto [index, value] : llvm::enumerate(tensor.floats))
    value = floats.load(index);
  for (auto [index, value] : llvm::enumerate(tensor.ints)) {
    int32_t narrow;
    std::memcpy(&narrow, bytes.data() + index * sizeof(narrow), sizeof(narrow));
    value = narrow;
  }
  return tensor;
}

SmallVector<int64_t> physicalShapeOf(const interp::Cache &cache, KvCacheType type) {
  SmallVector<int64_t> shape = type.getPhysicalShape();
  shape[1] = cache.batch;
  shape[3] = cache.positions / type.getLayout().getBlock();
  return shape;
}

/// Calls `visit(index in cache.data, index in the physical cache)` for every element.
template <typename Visit>
static void eachElement(const interp::Cache &cache, KvCacheType type, Visit visit) {
  KvLayoutAttr layout = type.getLayout();
  int64_t block = layout.getBlock(), depth = layout.getDepth(), heads = type.getHeads(),
          headDim = type.getHeadDim(), padded = roundUp(headDim, kHeadDimUnit);
  bool keys = layout.getKind() == KvKind::Keys;
  int64_t blocks = cache.positions / block, logical = 0;
  // Where the elements of a head stand, without its position.
  std::vector<int64_t> places(headDim);
  for (int64_t d = 0; d < headDim; ++d)
    places[d] = keys ? d / depth * block * depth + d % depth : d * depth;
  for (int64_t part = 0; part < type.getLayers() * cache.batch; ++part)
    for (int64_t position = 0; position < cache.positions; ++position)
      for (int64_t head = 0; head < heads; ++head) {
        int64_t number = (part * heads + head) * blocks + position / block,
                inBlock = position % block,
                start = keys ? inBlock * depth : inBlock / depth * padded * depth + inBlock % depth;
        for (int64_t place : places)
          visit(logical++, number * block * padded + start + place);
      }
}

void storeCache(const interp::Cache &cache, KvCacheType type, MutableArrayRef<uint8_t> bytes) {
  std::memset(bytes.data(), 0, bytes.size());
  Floats floats(type.getElementType(), bytes.data());
  eachElement(cache, type, [&](int64_t logical, int64_t physical) {
    floats.store(physical, cache.data[logical]);
  });
}

void loadCache(interp::Cache &cache, KvCacheType type, ArrayRef<uint8_t> bytes) {
  Floats floats(type.getElementType(), bytes.data());
  eachElement(cache, type, [&](int64_t logical, int64_t physical) {
    cache.data[logical] = floats.load(physical);
  });
}

} // namespace mica::test
