//===- Checkpoint.cpp - random weights for the packer and the interpreter -===//

#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include "ir/Mica/HalfFloat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace mica::test {

std::vector<float> randomNumbers(StringRef name, int64_t count) {
  std::mt19937 random(static_cast<uint32_t>(llvm::xxh3_64bits(name)));
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
  return numbers;
}

void makeUneven(MutableArrayRef<float> numbers, int64_t rowSize) {
  for (int64_t row = 0; !numbers.empty(); ++row, numbers = numbers.drop_front(rowSize)) {
    MutableArrayRef<float> own = numbers.take_front(rowSize);
    auto scale = [&](float factor) {
      for (float &number : own)
        number *= factor;
    };
    switch (row % 8) {
    case 0:
      break;
    case 1: // One in sixteen stands out.
      for (auto [at, number] : llvm::enumerate(own))
        number *= at % 16 == 5 ? 1.0f : 0x1p-6f;
      break;
    case 2:
      scale(0.5f);
      break;
    case 3:
      scale(0);
      break;
    case 4:
      llvm::fill(own, -0.375f);
      break;
    case 5: // Every 32 of them have a size of their own.
      for (auto [at, number] : llvm::enumerate(own))
        number = std::ldexp(number, -static_cast<int>(at / 32 * 5 % 7));
      break;
    case 6:
      scale(0x1p-20f);
      break;
    default:
      scale(0x1p-140f);
      break;
    }
  }
}

/// The shape of each source of `weight`.
static SmallVector<int64_t> sourceShapeOf(WeightOp weight) {
  SmallVector<int64_t> shape(weight.getTensorType().getShape());
  if (weight.getCompose() == Compose::Concat)
    shape[0] /= static_cast<int64_t>(weight.getSourceNames().size());
  if (weight.getCompose() == Compose::Stack)
    shape.erase(shape.begin());
  if (auto rows = weight->getAttrOfType<IntegerAttr>("test.rows"))
    shape[0] = rows.getInt();
  return shape;
}

Checkpoint::Checkpoint(ModuleOp module, bool uneven) {
  Type f32 = Float32Type::get(module.getContext());
  for (auto weight : module.getOps<WeightOp>())
    for (StringRef name : weight.getSourceNames()) {
      // Weights may share what they are made of.
      if (tensors.contains(name))
        continue;
      interp::Tensor tensor = interp::Tensor::zeros(f32, sourceShapeOf(weight));
      tensor.floats = randomNumbers(name, tensor.getNumElements());
      Type stored = weight.getTensorType().getElementType();
      auto blocks = dyn_cast<BlockIntType>(stored);
      if (uneven && isQuantized(stored) && !blocks)
        makeUneven(tensor.floats, tensor.shape.back());
      tensors.try_emplace(name, std::move(tensor));
      if (blocks)
        addBlocks(name, blocks);
    }
}

/// A block is an f16 and a byte for each integer, whatever its bits.
static constexpr int64_t kBlockBytes = 2 + BlockRow::group;

static uint16_t splitBlock(const uint8_t *block, int8_t *integers) {
  std::memcpy(integers, block + 2, BlockRow::group);
  return static_cast<uint16_t>(block[0] | block[1] << 8);
}

void Checkpoint::addBlocks(StringRef name, BlockIntType type) {
  std::vector<float> &numbers = tensors[name].floats;
  std::vector<uint8_t> &bytes = blocks[name];
  bits[name] = type.getBits();
  int64_t least = -(int64_t(1) << (type.getBits() - 1));
  // Their magnitude is about 1 over that of the integers: 2^-7 or 2^-3. One is zero, one subnormal.
  uint16_t one = type.getBits() == 8 ? 0x2000 : 0x3000;
  for (size_t begin = 0; begin < numbers.size(); begin += BlockRow::group) {
    auto bitsOf = [&](size_t i) { return static_cast<uint32_t>((numbers[i] + 1) * 0x1p23f); };
    uint16_t scale = one - bitsOf(begin) % 1024 | (bitsOf(begin + 1) % 2) << 15;
    if (begin % 544 == 0)
      scale = begin % 1088 == 0 ? 0 : 0x8003;
    bytes.push_back(scale & 255);
    bytes.push_back(scale >> 8);
    for (size_t i = begin; i < begin + BlockRow::group; ++i) {
      auto integer = static_cast<int8_t>(least + int64_t(bitsOf(i) % (2 * -least)));
      bytes.push_back(static_cast<uint8_t>(integer));
      numbers[i] = llvm::bit_cast<float>(fromF16(scale)) * static_cast<float>(integer);
    }
  }
}

llvm::Expected<cpu::SourceTensor> Checkpoint::find(StringRef name) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return llvm::createStringError("no tensor " + name);
  const interp::Tensor &tensor = found->second;
  if (auto stored = blocks.find(name); stored != blocks.end()) {
    cpu::SourceTensor result{cpu::WeightType::F32, SmallVector<int64_t, 4>(ArrayRef(tensor.shape)),
                             stored->second};
    result.blocks = {.elements = BlockRow::group,
                     .bytes = kBlockBytes,
                     .decode = [](const uint8_t *, float *) {},
                     .bits = bits.find(name)->second,
                     .split = splitBlock};
    return result;
  }
  auto *bytes = reinterpret_cast<const uint8_t *>(tensor.floats.data());
  return cpu::SourceTensor{cpu::WeightType::F32, SmallVector<int64_t, 4>(ArrayRef(tensor.shape)),
                           ArrayRef(bytes, tensor.floats.size() * sizeof(float))};
}

interp::WeightProvider Checkpoint::getProvider() const {
  return [this](StringRef name) -> llvm::Expected<interp::Tensor> {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return llvm::createStringError("no tensor " + name);
    return found->second;
  };
}

} // namespace mica::test
