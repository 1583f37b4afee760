//===- Memory.cpp - values in the layouts of programs ---------------------===//

#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "ir/Quantize/Quantize.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>
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

bool GuardedMemory::guardsAreIntact() const {
  auto isUntouched = [](uint8_t byte) { return byte == 0xff; };
  return std::all_of(mapping, start, isUntouched) &&
         std::all_of(start + size, mapping + mapped - kPage, isUntouched);
}

void GuardedMemory::protect() {
  if (mprotect(mapping, mapped - kPage, PROT_READ))
    llvm::report_fatal_error("a test's buffer cannot be protected");
}

static size_t sizeOf(Type elementType) {
  return isQuantized(elementType) ? 1 : elementType.getIntOrFloatBitWidth() / 8;
}

size_t bytesOf(Type elementType, ArrayRef<int64_t> shape) {
  return ShapedType::getNumElements(shape) * sizeOf(elementType);
}

namespace {
/// Floats in memory as f32 or bf16. Stores are exact, because the interpreter's floats are already
/// rounded.
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

SmallVector<int64_t> physicalShapeOf(const interp::Cache &cache, SequenceState type) {
  SmallVector<int64_t> shape(type.getPhysicalType().getShape());
  shape[1] = cache.batch;
  if (auto blocks = dyn_cast<KvCacheType>(type))
    shape[3] = cache.positions / blocks.getLayout().getBlock();
  return shape;
}

/// Calls `visit(logical, physical)` for the numbers of a state of fixed size, by position.
static void eachOfRing(const interp::Cache &cache, SequenceState type,
                       llvm::function_ref<void(int64_t, int64_t)> visit) {
  int64_t size = cache.rowSize(), slots = type.getSlots();
  for (int64_t part = 0; part < type.getLayers() * cache.batch; ++part)
    for (int64_t position = 0; position < cache.positions; ++position)
      for (int64_t i = 0; i < size; ++i)
        visit((part * cache.positions + position) * size + i,
              (part * slots + position % slots) * size + i);
}

namespace {
/// One head at one position of a cache.
struct CachedHead {
  int64_t logical; ///< index in the cache's data
  int64_t block;   ///< offset of its block, in elements
  int64_t first;   ///< its element 0 in the block
  int64_t inBlock; ///< its position in the block
};
} // namespace

/// Calls `visit(head)` for every head at every position.
static void eachHead(const interp::Cache &cache, KvCacheType type,
                     llvm::function_ref<void(const CachedHead &)> visit) {
  KvLayoutAttr layout = type.getLayout();
  int64_t block = layout.getBlock(), depth = layout.getDepth(), heads = type.getHeads(),
          padded = roundUp(type.getHeadDim(), kHeadDimUnit), size = type.getPhysicalShape().back();
  bool keys = layout.getKind() == KvKind::Keys;
  int64_t blocks = cache.positions / block, logical = 0;
  for (int64_t part = 0; part < type.getLayers() * cache.batch; ++part)
    for (int64_t position = 0; position < cache.positions; ++position)
      for (int64_t head = 0; head < heads; ++head, logical += type.getHeadDim()) {
        int64_t number = (part * heads + head) * blocks + position / block,
                inBlock = position % block;
        visit({logical, number * size,
               keys ? inBlock * depth : inBlock / depth * padded * depth + inBlock % depth,
               inBlock});
      }
}

/// The offsets of a head's elements from its element 0.
static std::vector<int64_t> placesOfHead(KvCacheType type) {
  int64_t block = type.getLayout().getBlock(), depth = type.getLayout().getDepth();
  bool keys = type.getLayout().getKind() == KvKind::Keys;
  std::vector<int64_t> places(type.getHeadDim());
  for (auto [d, place] : llvm::enumerate(places)) {
    auto element = static_cast<int64_t>(d);
    place = keys ? element / depth * block * depth + element % depth : element * depth;
  }
  return places;
}

/// The integers of a head that was dequantized from integers, and the scale that reproduces them
/// exactly.
static float encode(ArrayRef<float> head, MutableArrayRef<int8_t> q) {
  float scale = quantizeInt8(head, q);
  auto stands = [&](float candidate) {
    return llvm::all_of_zip(
        head, q, [&](float x, int8_t i) { return x == candidate * static_cast<float>(i); });
  };
  for (float candidate : {scale, std::nextafter(scale, 0.0f), std::nextafter(scale, INFINITY)})
    if (stands(candidate))
      return candidate;
  return scale;
}

bool storesPositions(SequenceState type) { return !isa<RecurrentStateType>(type); }

void storeCache(const interp::Cache &cache, SequenceState state, MutableArrayRef<uint8_t> bytes) {
  if (!storesPositions(state)) {
    std::memset(bytes.data(), 0xff, bytes.size());
    return;
  }
  std::memset(bytes.data(), 0, bytes.size());
  if (state.getSlots() > 0) {
    Floats floats(state.getElementType(), bytes.data());
    return eachOfRing(cache, state, [&](int64_t logical, int64_t physical) {
      floats.store(physical, cache.data[logical]);
    });
  }
  auto type = cast<KvCacheType>(state);
  std::vector<int64_t> places = placesOfHead(type);
  if (isQuantized(type.getElementType())) {
    SmallVector<int8_t> q(places.size());
    eachHead(cache, type, [&](const CachedHead &at) {
      float scale = encode(ArrayRef(cache.data).slice(at.logical, q.size()), q);
      for (auto [place, integer] : llvm::zip_equal(places, q))
        bytes[at.block + at.first + place] = static_cast<uint8_t>(integer);
      std::memcpy(&bytes[at.block + type.getScaleOffset(at.inBlock)], &scale, sizeof(scale));
    });
    return;
  }
  Floats floats(type.getElementType(), bytes.data());
  eachHead(cache, type, [&](const CachedHead &at) {
    for (auto [d, place] : llvm::enumerate(places))
      floats.store(at.block + at.first + place, cache.data[at.logical + d]);
  });
}

void loadCache(interp::Cache &cache, SequenceState state, ArrayRef<uint8_t> bytes) {
  if (!storesPositions(state))
    return;
  if (state.getSlots() > 0) {
    Floats floats(state.getElementType(), bytes.data());
    return eachOfRing(cache, state, [&](int64_t logical, int64_t physical) {
      cache.data[logical] = floats.load(physical);
    });
  }
  auto type = cast<KvCacheType>(state);
  std::vector<int64_t> places = placesOfHead(type);
  if (isQuantized(type.getElementType()))
    return eachHead(cache, type, [&](const CachedHead &at) {
      float scale;
      std::memcpy(&scale, &bytes[at.block + type.getScaleOffset(at.inBlock)], sizeof(scale));
      for (auto [d, place] : llvm::enumerate(places))
        cache.data[at.logical + d] =
            scale * static_cast<float>(static_cast<int8_t>(bytes[at.block + at.first + place]));
    });
  Floats floats(type.getElementType(), bytes.data());
  eachHead(cache, type, [&](const CachedHead &at) {
    for (auto [d, place] : llvm::enumerate(places))
      cache.data[at.logical + d] = floats.load(at.block + at.first + place);
  });
}

} // namespace mica::test
