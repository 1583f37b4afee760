//===- KernelHarness.h - functions of mica ops, interpreted and compiled --===//
//
// Takes the text of a module at stage `fused` or `kernels` whose public functions have any
// arguments and results, and runs them like compiled programs and in the interpreter.
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

/// A compiled function with memory for its arguments and results. Another call uses the memory as
/// the previous one left it.
class KernelCall {
public:
  KernelCall(KernelCall &&) = default;
  KernelCall(const KernelCall &) = delete;

  void operator()() const { model(pointers); }

  /// The results of the function: tensors, then the caches that it received; those that do not
  /// store positions are the arguments.
  llvm::SmallVector<interp::Value> getResults() const;

  /// Copies the memory of the caches from another call of the function, with as many sequences.
  void continueFrom(const KernelCall &other);

  /// Describes writes outside of the elements of results and caches; empty if there are none.
  /// Writing past a buffer, or to the weights, faults immediately.
  std::string findDamage() const;

private:
  friend class KernelModule;
  /// A tensor or a cache in memory.
  struct Buffer {
    GuardedMemory memory;
    llvm::SmallVector<int64_t> shape;
    std::vector<int64_t> descriptor;
    std::string name;
    std::vector<uint8_t> given; ///< initial content of an argument's memory
    interp::Value cache;        ///< initial content of a cache's memory
    SequenceState type;         ///< of a cache, else null
  };

  KernelCall(const LoadedModel &model, size_t descriptors);
  Buffer &add(size_t place, llvm::StringRef name, llvm::ArrayRef<int64_t> shape, size_t bytes,
              size_t alignment);

  const LoadedModel &model;
  std::vector<int64_t> unused; ///< passed for the arguments of other functions
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<void *> pointers;
  /// The tensor results, in order.
  llvm::SmallVector<std::pair<mlir::Type, const Buffer *>> outputs;
  /// The cache results.
  llvm::SmallVector<const Buffer *> caches;
};

/// A module, compiled for a target and loaded, with random weights.
class KernelModule {
public:
  /// Functions return a tensor, then tensors and caches; the caches are arguments in the same
  /// order. All tensor results have as many rows as the first argument. The code calls `runtime`,
  /// which must outlive the module. With `unevenWeights`, makeUneven is applied to weights that are
  /// quantized to integers; it has subnormal rows, which are slow. Errors name the stage that
  /// cannot be reached, with the reason.
  static llvm::Expected<std::unique_ptr<KernelModule>> compile(llvm::StringRef text,
                                                               const cpu::TargetDescription &target,
                                                               const rt::RuntimeTable &runtime,
                                                               bool unevenWeights = false);

  /// Fails if `compile` would, but creates neither weights nor code.
  static llvm::Error lower(llvm::StringRef text, const cpu::TargetDescription &target);

  /// The original function.
  mlir::func::FuncOp getFunction(llvm::StringRef name) const;

  size_t getWeightBytes() const { return weights->bytes().size(); }

  /// The interpreter's results.
  llvm::Expected<llvm::SmallVector<interp::Value>>
  interpret(llvm::StringRef function, llvm::ArrayRef<interp::Value> arguments) const;

  /// A call of the compiled function with copies of the arguments.
  KernelCall prepare(llvm::StringRef function, llvm::ArrayRef<interp::Value> arguments) const;

private:
  /// The calling convention of a compiled function.
  struct Signature {
    int64_t number;       ///< of the function
    size_t firstArgument; ///< index of its first descriptor among those of all functions
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
  mlir::OwningOpRef<mlir::ModuleOp> source; ///< the original module
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< the module being lowered
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
