//===- ObjectCache.h - a cache of compiled code -----------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_DRIVER_OBJECTCACHE_H
#define MICA_BACKENDS_CPU_DRIVER_OBJECTCACHE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mica::cpu {

/// A folder of objects by the LLVM IR from which they were compiled, and by the module at stage
/// `kernels`. LLVM takes most of the time of a compilation, and the passes from `kernels` to LLVM
/// IR most of the rest; models of the same shapes and formats have the same code, whatever their
/// weights are. An object is found by LLVM IR also after a change of those passes that does not
/// change the code. Several processes may use the folder at once.
class ObjectCache {
public:
  static constexpr uint64_t kDefaultLimit = uint64_t(1) << 30; ///< bytes

  /// The cache in the folder $MICA_OBJECT_CACHE; none if the variable is unset or empty. Error: it
  /// is not a folder.
  static llvm::Expected<std::optional<ObjectCache>> fromEnvironment();
  /// When the objects exceed `limit` bytes, the least recently used ones are removed.
  explicit ObjectCache(std::string folder, uint64_t limit = kDefaultLimit)
      : folder(std::move(folder)), limit(limit) {}

  /// XXH3-64 in hexadecimal over everything that determines the object that optimize() and emit()
  /// make of `code`: its bitcode, the target, the version of LLVM and their implementation.
  static std::string keyOf(const llvm::Module &code, const llvm::TargetMachine &machine);
  /// XXH3-64 in hexadecimal over everything that determines what the passes and LLVM make of
  /// `module`: its operations with locations, and the executable of this process. Empty if that
  /// cannot be read.
  static std::string keyOf(mlir::ModuleOp module);

  /// The object `key`; none if it is missing or damaged.
  std::optional<llvm::SmallString<0>> find(llvm::StringRef key) const;
  /// Error: the file cannot be written.
  llvm::Error store(llvm::StringRef key, llvm::StringRef object) const;

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string folder;
  uint64_t limit;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_OBJECTCACHE_H
