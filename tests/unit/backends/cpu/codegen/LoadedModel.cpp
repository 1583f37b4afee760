//===- LoadedModel.cpp - code of a program, loaded into this process ------===//

#include "tests/unit/backends/cpu/codegen/LoadedModel.h"

#include "backends/cpu/codegen/ModelSymbols.h"
#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/SharedObject.h"
#include "backends/cpu/features/Cpu.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::test {

/// The object `key` of a cache, or what `make` returns, which is then stored. Without a cache or a
/// key it is made.
static llvm::Expected<llvm::SmallString<0>>
findOrMake(const cpu::ObjectCache *cache, llvm::StringRef key,
           llvm::function_ref<llvm::Expected<llvm::SmallString<0>>()> make) {
  if (!cache || key.empty())
    return make();
  if (std::optional<llvm::SmallString<0>> found = cache->find(key))
    return std::move(*found);
  llvm::Expected<llvm::SmallString<0>> object = make();
  if (object)
    if (llvm::Error error = cache->store(key, *object))
      return std::move(error);
  return object;
}

llvm::Expected<llvm::SmallString<0>>
compileToObject(llvm::Module &code, llvm::TargetMachine &machine, const cpu::ObjectCache *cache) {
  return findOrMake(cache, cache ? cpu::ObjectCache::keyOf(code, machine) : "", [&] {
    cpu::optimize(code, machine);
    return cpu::emit(code, machine, llvm::CodeGenFileType::ObjectFile);
  });
}

/// The object of a module at stage `llvm`.
static llvm::Expected<llvm::SmallString<0>> makeObject(mlir::ModuleOp module,
                                                       const cpu::ObjectCache *cache) {
  auto machine = cpu::createTargetMachine(cpu::targetOf(module));
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto ir = cpu::translateToLlvmIr(module, context, **machine);
  if (!ir)
    return ir.takeError();
  return compileToObject(**ir, **machine, cache);
}

llvm::Expected<llvm::SmallVector<char, 0>>
makeSharedObject(mlir::ModuleOp module, llvm::function_ref<llvm::Error()> lower) {
  auto found = cpu::ObjectCache::fromEnvironment();
  if (!found)
    return found.takeError();
  const cpu::ObjectCache *cache = *found ? &**found : nullptr;
  auto object = findOrMake(cache, cache ? cpu::ObjectCache::keyOf(module) : "",
                           [&]() -> llvm::Expected<llvm::SmallString<0>> {
                             if (llvm::Error error = lower())
                               return std::move(error);
                             return makeObject(module, cache);
                           });
  if (!object)
    return object.takeError();
  auto shared = cpu::linkSharedObject(*object);
  if (!shared)
    return shared.takeError();
  if (llvm::Error error = cpu::checkUndefinedSymbols(
          llvm::StringRef(shared->data(), shared->size()), cpu::kLibrarySymbols))
    return error;
  return shared;
}

LoadedModel::LoadedModel(llvm::ArrayRef<char> sharedObject, const rt::RuntimeTable &runtime)
    : runtime(runtime), file(memfd_create("model", 0)) {
  if (write(file, sharedObject.data(), sharedObject.size()) ==
      static_cast<ssize_t>(sharedObject.size()))
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    forward = reinterpret_cast<decltype(forward)>(dlsym(handle, cpu::kForwardSymbol));
  if (!forward) {
    const char *reason = dlerror();
    error = reason ? reason : "the shared object cannot be written into memory";
  }
}

LoadedModel::~LoadedModel() {
  if (handle)
    dlclose(handle);
  close(file);
}

llvm::Expected<cpu::TargetDescription> describeTestTarget(llvm::StringRef name) {
  bool narrow = name.consume_back("-256");
  llvm::Expected<cpu::TargetDescription> target = cpu::describeTarget(name);
  if (target && narrow) {
    target->vectorBits = 256;
    target->bf16Dot = target->fastBf16Dot = target->tiles = false;
  }
  return target;
}

std::vector<std::string> runnableTargets(std::initializer_list<const char *> names) {
  std::vector<std::string> runnable;
  for (const char *name : names) {
    llvm::Expected<cpu::TargetDescription> target = describeTestTarget(name);
    // Like a program: a process must request AMX tiles.
    if (target && rt::checkCpu(name, target->features))
      runnable.push_back(name);
  }
  return runnable;
}

} // namespace mica::test
