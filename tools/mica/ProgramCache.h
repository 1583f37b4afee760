//===- ProgramCache.h - the cache of compiled programs ----------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_PROGRAMCACHE_H
#define MICA_TOOLS_MICA_PROGRAMCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::tool {

struct CachedProgram {
  std::string name; ///< that of the model, `-` and the key
  std::string path;
  uint64_t bytes = 0;
  llvm::sys::TimePoint<> lastUse;
};

/// A folder of programs, one per key, bounded in size by removing the least recently used ones.
class ProgramCache {
public:
  /// $XDG_CACHE_HOME/mica, or ~/.cache/mica. The bound is 16 GiB, or $MICA_CACHE_BYTES.
  static llvm::Expected<ProgramCache> open();
  /// The same, without making the folder.
  static llvm::Expected<ProgramCache> locate();
  ProgramCache(std::string folder, uint64_t bound) : folder(std::move(folder)), bound(bound) {}

  /// The path of the program `key`. Where it is not there yet, or `isWhole` finds it damaged,
  /// `make` writes it to the path that it is given; a second process that wants the same program
  /// waits meanwhile.
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  llvm::function_ref<bool(const std::string &path)> isWhole,
                                  llvm::function_ref<llvm::Error(llvm::StringRef path)> make);

  const std::string &path() const { return folder; }
  uint64_t limit() const { return bound; } ///< bytes
  /// The programs, those unused for the longest time first. Empty where the folder is not there.
  std::vector<CachedProgram> programs() const;
  /// Refuses a program that another process is about to start or is compiling.
  llvm::Error remove(const CachedProgram &program) const;

private:
  void evict(llvm::StringRef keep) const;
  void removeLeftovers(llvm::StringRef held) const;

  std::string folder;
  uint64_t bound; ///< bytes
};

/// Whether the file is a program whose size, header, launcher, code, manifest and tokenizer are as
/// they were written; its weights are not read.
bool isWholeProgram(const std::string &path);

/// XXH3-64 in hexadecimal over what decides the program: names and bytes of the model's files and
/// of `makers` (the compiler and the launcher: another build of either makes another program), and
/// `options`.
llvm::Expected<std::string> cacheKey(llvm::StringRef model, llvm::StringRef options,
                                     llvm::ArrayRef<std::string> makers);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_PROGRAMCACHE_H
