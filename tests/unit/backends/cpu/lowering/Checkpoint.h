//===- Checkpoint.h - random weights for the packer and the interpreter -*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace mica::test {

/// `count` numbers in [-1, 1), the same for a name in every run.
std::vector<float> randomNumbers(llvm::StringRef name, int64_t count);

/// Makes rows of such numbers what those of models are: of many sizes, with few numbers far above
/// the others, all zero, all alike, subnormal. Which of these a row becomes depends on its number.
void makeUneven(llvm::MutableArrayRef<float> numbers, int64_t rowSize);

/// The tensors of f32 that the weights of a module are made of, with random values; those of
/// weights of !mica.block are blocks of the format. Their shapes follow from the weights' types;
/// sources that are padded need `test.rows` on the weight. The codes of a weight in blocks with
/// `test.extreme` are extremeCode().
class Checkpoint final : public cpu::WeightSource {
public:
  /// With `uneven` such are those that become integers.
  Checkpoint(mlir::ModuleOp module, bool uneven);

  llvm::Expected<cpu::SourceTensor> find(llvm::StringRef name) const override;
  void release(llvm::StringRef) const override {}
  interp::WeightProvider getProvider() const;

private:
  void addExtremes(llvm::StringRef name, const BlockFormat &format);
  void addBlocks(llvm::StringRef name, const BlockFormat &format, std::vector<uint8_t> bytes);

  llvm::StringMap<interp::Tensor> tensors;
  /// Of those that are stored so.
  struct Blocks {
    const BlockFormat *format;
    std::vector<uint8_t> bytes;
  };
  llvm::StringMap<Blocks> blocks;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_CHECKPOINT_H
