//===- Checkpoint.cpp - random weights for the packer and the interpreter -===//

#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

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

Checkpoint::Checkpoint(ModuleOp module) {
  Type f32 = Float32Type::get(module.getContext());
  for (auto weight : module.getOps<WeightOp>())
    for (StringRef name : weight.getSourceNames()) {
      interp::Tensor tensor = interp::Tensor::zeros(f32, sourceShapeOf(weight));
      tensor.floats = randomNumbers(name, tensor.getNumElements());
      tensors.try_emplace(name, std::move(tensor));
    }
}

llvm::Expected<cpu::SourceTensor> Checkpoint::find(StringRef name) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return llvm::createStringError("no tensor " + name);
  const interp::Tensor &tensor = found->second;
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
