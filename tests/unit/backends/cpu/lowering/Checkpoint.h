//===- Checkpoint.h - random weights for the packer and the interpreter ---===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace mica::test {

/// `count` numbers in [-1, 1), the same for a name in every run.
std::vector<float> randomNumbers(llvm::StringRef name, int64_t count);

/// Makes rows of such numbers similar to those of models: of different magnitudes, with outliers,
/// all zero, all equal, subnormal. The kind of a row depends on its index.
void makeUneven(llvm::MutableArrayRef<float> numbers, int64_t rowSize);

/// The f32 tensors from which a module's weights are built, with random values; weights of
/// !mica.block have blocks of the format. Shapes follow from the weights' types; padded sources
/// need `test.rows` on the weight. The codes of a block-quantized weight with `test.extreme` are
/// extremeCode().
class Checkpoint final : public cpu::WeightSource {
public:
  /// With `uneven`, makeUneven is applied to weights that are quantized to integers.
  Checkpoint(mlir::ModuleOp module, bool uneven);

  llvm::Expected<cpu::SourceTensor> find(llvm::StringRef name) const override;
  void release(llvm::StringRef) const override {}
  interp::WeightProvider getProvider() const;

private:
  void addExtremes(llvm::StringRef name, const BlockFormat &format);
  void addBlocks(llvm::StringRef name, const BlockFormat &format, std::vector<uint8_t> bytes);

  llvm::StringMap<interp::Tensor> tensors;
  /// The blocks of a block-quantized tensor.
  struct Blocks {
    const BlockFormat *format;
    std::vector<uint8_t> bytes;
  };
  llvm::StringMap<Blocks> blocks;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H
