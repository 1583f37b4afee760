//===- LoadedModel.h - code of a program, loaded into this process --------===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_LOADEDMODEL_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_LOADEDMODEL_H

#include "backends/cpu/driver/ObjectCache.h"
#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/abi/RowRole.h"
#include "backends/runtime/abi/RuntimeTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica::test {

/// The object of `code`: from the cache, which may be null, or else optimized and emitted.
llvm::Expected<llvm::SmallString<0>>
compileToObject(llvm::Module &code, llvm::TargetMachine &machine, const cpu::ObjectCache *cache);

/// The shared object of a module, compiled for the target that it names. `lower` changes the module
/// to stage `llvm`; it is not called if $MICA_OBJECT_CACHE has code that this executable made of
/// the same module.
llvm::Expected<llvm::SmallVector<char, 0>>
makeSharedObject(mlir::ModuleOp module, llvm::function_ref<llvm::Error()> lower);

/// A loaded shared object. It calls the functions of `runtime`, which must outlive it; the program
/// that loads it exports nothing.
class LoadedModel {
public:
  LoadedModel(llvm::ArrayRef<char> sharedObject, const rt::RuntimeTable &runtime);
  ~LoadedModel();
  LoadedModel(const LoadedModel &) = delete;
  LoadedModel &operator=(const LoadedModel &) = delete;

  /// Calls mica_forward.
  void operator()(const std::vector<void *> &descriptors,
                  rt::RowRole role = rt::RowRole::Decode) const {
    forward(descriptors.data(), role, &runtime);
  }
  std::string error; ///< empty if it was loaded

private:
  const rt::RuntimeTable &runtime;
  int file; ///< open while the object is loaded: dlopen identifies objects by their names
  void *handle = nullptr;
  void (*forward)(void *const *, rt::RowRole, const rt::RuntimeTable *) = nullptr;
};

/// cpu::describeTarget; `CPU-256` is that CPU with 256-bit vectors, like a CPU that has the same
/// int8 dot products but no wider vectors.
llvm::Expected<cpu::TargetDescription> describeTestTarget(llvm::StringRef name);

/// The targets in `names` whose code this machine can run, in order.
std::vector<std::string> runnableTargets(std::initializer_list<const char *> names = {
                                             "native", "x86-64-v3", "x86-64-v4", "znver5",
                                             "sapphirerapids"});

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_LOADEDMODEL_H
