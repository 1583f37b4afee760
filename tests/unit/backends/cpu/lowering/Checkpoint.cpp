//===- Checkpoint.cpp - random weights for the packer and the interpreter -===//

#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include "tests/unit/RandomBlocks.h"

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
    case 1: // One in sixteen is an outlier.
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
    case 5: // Each group of 32 has its own magnitude.
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
    shape[0] /= static_cast<int64_t>(weight.getSourceList().size());
  if (weight.getCompose() == Compose::Stack)
    shape.erase(shape.begin());
  if (auto rows = weight->getAttrOfType<IntegerAttr>("test.rows"))
    shape[0] = rows.getInt();
  return shape;
}

Checkpoint::Checkpoint(ModuleOp module, bool uneven) {
  Type f32 = Float32Type::get(module.getContext());
  for (auto weight : module.getOps<WeightOp>())
    for (Attribute source : weight.getSourceList()) {
      StringRef name = cast<StringAttr>(source).getValue();
      // Weights may share their sources.
      if (tensors.contains(name))
        continue;
      interp::Tensor tensor = interp::Tensor::zeros(f32, sourceShapeOf(weight));
      tensor.floats = randomNumbers(name, tensor.getNumElements());
      Type stored = weight.getTensorType().getElementType();
      const BlockFormat *blocks = blockFormatOf(stored);
      bool keeps = blocks && !blocks->isOwn;
      if (uneven && isQuantized(stored) && !keeps)
        makeUneven(tensor.floats, tensor.shape.back());
      tensors.try_emplace(name, std::move(tensor));
      if (weight->hasAttr("test.extreme"))
        addExtremes(name, *blocks);
      else if (keeps)
        addBlocks(name, *blocks,
                  randomBlocks(*blocks, tensors[name].getNumElements() / blocks->elements,
                               static_cast<uint32_t>(llvm::xxh3_64bits(name))));
    }
}

void Checkpoint::addExtremes(StringRef name, const BlockFormat &format) {
  interp::Tensor &tensor = tensors[name];
  std::vector<uint8_t> bytes;
  std::vector<float> numbers;
  for (int64_t row = 0; row < tensor.getNumElements() / tensor.rowSize(); ++row)
    if (format.isOwn)
      llvm::append_range(numbers, extremeNumbers(format, tensor.rowSize(), row));
    else
      llvm::append_range(bytes, extremeBlocks(format, tensor.rowSize() / format.elements, row));
  if (format.isOwn)
    tensor.floats = std::move(numbers);
  else
    addBlocks(name, format, std::move(bytes));
}

void Checkpoint::addBlocks(StringRef name, const BlockFormat &format, std::vector<uint8_t> bytes) {
  tensors[name].floats = decodeAll(format, bytes);
  blocks[name] = {&format, std::move(bytes)};
}

llvm::Expected<cpu::SourceTensor> Checkpoint::find(StringRef name) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return llvm::createStringError("no tensor " + name);
  const interp::Tensor &tensor = found->second;
  if (auto stored = blocks.find(name); stored != blocks.end()) {
    cpu::SourceTensor result{cpu::WeightType::F32, SmallVector<int64_t, 4>(ArrayRef(tensor.shape)),
                             stored->second.bytes};
    result.blocks.format = stored->second.format;
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
