//===- KernelHarness.h - functions of mica ops, interpreted and compiled -*- C++ -*-===//
//
// Takes the text of a module at stage `fused` or `kernels` whose public functions have any
// arguments and results, and runs them as compiled programs do and as the interpreter does.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELHARNESS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELHARNESS_H

#include "tests/unit/backends/cpu/codegen/LoadedModel.h"
#include "tests/unit/backends/cpu/lowering/Checkpoint.h"
#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace mica::test {

class KernelModule;

/// A compiled function with memory for its arguments and results. Calling it again continues with
/// whatever the call before left in place.
class KernelCall {
public:
  KernelCall(KernelCall &&) = default;
  KernelCall(const KernelCall &) = delete;

  void operator()() const { model(pointers); }

  /// The results of the function: tensors, then the caches that it received.
  llvm::SmallVector<interp::Value> getResults() const;

  /// Names what was written outside of the elements of results and caches; empty where all is well.
  /// Writing past a buffer, or to the weights, faults at once.
  std::string findDamage() const;

private:
  friend class KernelModule;
  /// A tensor or a cache in memory.
  struct Buffer {
    GuardedMemory memory;
    llvm::SmallVector<int64_t> shape;
    std::vector<int64_t> descriptor;
    std::string name;
    std::vector<uint8_t> given; ///< what the memory of an argument was filled with
    interp::Value cache;        ///< what the memory of a cache was filled with
    SequenceState type;         ///< of a cache, else null
  };

  KernelCall(const LoadedModel &model, size_t descriptors);
  Buffer &add(size_t place, llvm::StringRef name, llvm::ArrayRef<int64_t> shape, size_t bytes,
              size_t alignment);

  const LoadedModel &model;
  std::vector<int64_t> unused; ///< stands for the arguments of other functions
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<void *> pointers;
  /// The tensors among the results, in their order.
  llvm::SmallVector<std::pair<mlir::Type, const Buffer *>> outputs;
  /// The caches among the results.
  llvm::SmallVector<const Buffer *> caches;
};

/// A module, compiled for a target and loaded, with random weights.
class KernelModule {
public:
  /// Functions return a tensor first, then tensors and caches; caches are those that they received,
  /// in the same order. All tensors that they return have as many rows as their first argument.
  /// The code calls `runtime`, which must outlive the module. Weights that become integers are
  /// `unevenWeights` on demand: subnormal ones take time. Errors say which stage cannot be reached
  /// and why.
  static llvm::Expected<std::unique_ptr<KernelModule>> compile(llvm::StringRef text,
                                                               const cpu::TargetDescription &target,
                                                               const rt::RuntimeTable &runtime,
                                                               bool unevenWeights = false);

  /// Fails where `compile` would, but makes neither weights nor code.
  static llvm::Error lower(llvm::StringRef text, const cpu::TargetDescription &target);

  /// The function as it was written.
  mlir::func::FuncOp getFunction(llvm::StringRef name) const;

  size_t getWeightBytes() const { return weights->bytes().size(); }

  /// What the function means.
  llvm::Expected<llvm::SmallVector<interp::Value>>
  interpret(llvm::StringRef function, llvm::ArrayRef<interp::Value> arguments) const;

  /// A call of the compiled function with copies of the arguments.
  KernelCall prepare(llvm::StringRef function, llvm::ArrayRef<interp::Value> arguments) const;

private:
  /// How a compiled function is called.
  struct Signature {
    int64_t number;       ///< of the function
    size_t firstArgument; ///< place of its first descriptor among those of all functions
    llvm::SmallVector<mlir::Type> arguments, tensors; ///< tensors: among the results
    size_t caches;                                    ///< among the results
  };

  KernelModule() = default;
  static llvm::Expected<std::unique_ptr<KernelModule>> parse(llvm::StringRef text);
  llvm::Error reachKernels();
  void recordSignatures();
  llvm::Error reachLoops(const cpu::TargetDescription &target);
  llvm::Error pack();
  llvm::Error reachCode(const rt::RuntimeTable &runtime);
  llvm::Error runPasses(llvm::StringRef goal, llvm::function_ref<void(mlir::OpPassManager &)> add);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> source; ///< as it was written
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< on its way to code
  std::unique_ptr<Checkpoint> checkpoint;
  llvm::StringMap<Signature> signatures;
  size_t descriptors = 1;
  int64_t scratchPerRow = 0, scratchFixed = 0;
  std::unique_ptr<GuardedMemory> weights;
  std::vector<int64_t> weightsDescriptor;
  std::unique_ptr<LoadedModel> model;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELHARNESS_H
