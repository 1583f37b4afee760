//===- ProgramCache.h - the cache of compiled programs ----------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_PROGRAMCACHE_H
#define MICA_TOOLS_MICA_PROGRAMCACHE_H

#include "backends/runtime/support/CacheFolder.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::tool {

struct CachedProgram : rt::CachedFile {
  std::string name; ///< the model's name, `-` and the key
};

/// A folder of programs, one per key, bounded in size by removing the least recently used ones.
class ProgramCache {
public:
  /// $XDG_CACHE_HOME/mica, or ~/.cache/mica. The limit is 16 GiB, or $MICA_CACHE_BYTES.
  static llvm::Expected<ProgramCache> open();
  /// The same, without creating the folder.
  static llvm::Expected<ProgramCache> locate();
  ProgramCache(std::string folder, uint64_t bound) : folder(std::move(folder)), bound(bound) {}

  /// The path of the program `key`. If it does not exist, or `isWhole` is false for it, `make`
  /// writes it to the path passed to it; other processes that request the same program wait.
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  llvm::function_ref<bool(const std::string &path)> isWhole,
                                  llvm::function_ref<llvm::Error(llvm::StringRef path)> make);

  const std::string &path() const { return folder; }
  uint64_t limit() const { return bound; } ///< bytes
  /// The programs, least recently used first. Empty if the folder does not exist.
  std::vector<CachedProgram> programs() const;
  /// Error: another process is about to start the program or is compiling it.
  llvm::Error remove(const CachedProgram &program) const;

private:
  void removeLeftovers(llvm::StringRef held) const;

  std::string folder;
  uint64_t bound; ///< bytes
};

/// Whether the file is a program whose size, header, launcher, code, manifest and tokenizer are
/// intact; weights are not read.
bool isWholeProgram(const std::string &path);

/// XXH3-64 in hexadecimal over everything that determines the program: names and bytes of the
/// model's files and of `makers` (the compiler and the launcher), and `options`.
llvm::Expected<std::string> cacheKey(llvm::StringRef model, llvm::StringRef options,
                                     llvm::ArrayRef<std::string> makers);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_PROGRAMCACHE_H
