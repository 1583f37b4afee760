//===- ObjectCache.cpp - a cache of compiled code -------------------------===//

#include "backends/cpu/driver/ObjectCache.h"

#include "backends/runtime/support/CacheFolder.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/TemporaryFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <span>
#include <vector>

using namespace llvm;

namespace mica::cpu {

static constexpr const char *kVariable = "MICA_OBJECT_CACHE";
static constexpr StringLiteral kEnding = ".o";

static std::span<const std::byte> bytesOf(StringRef text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

static std::string hexadecimal(uint64_t hash) {
  return utohexstr(hash, /*LowerCase=*/true, /*Width=*/16);
}

Expected<std::optional<ObjectCache>> ObjectCache::fromEnvironment() {
  const char *folder = std::getenv(kVariable);
  if (!folder || !*folder)
    return std::nullopt;
  if (!sys::fs::is_directory(folder))
    return createStringError(Twine(kVariable) + ": " + folder +
                             " is not a folder; create it or set another one");
  return ObjectCache(folder);
}

std::string ObjectCache::keyOf(const Module &code, const TargetMachine &machine) {
  SmallString<0> text;
  raw_svector_ostream stream(text);
  WriteBitcodeToFile(code, stream);
  // MICA_NATIVE_CODE is the hash of the source file that configures LLVM.
  stream << '\0' << machine.getTargetTriple().str() << '\0' << machine.getTargetCPU() << '\0'
         << machine.getTargetFeatureString() << '\0' << LLVM_VERSION_STRING << '\0'
         << MICA_NATIVE_CODE;
  return hexadecimal(rt::hashBytes(text.data(), text.size()));
}

/// The hash of the executable of this process; none if it cannot be read.
static std::optional<uint64_t> hashExecutable() {
  auto file = MemoryBuffer::getFile("/proc/self/exe", /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  return rt::hashBytes((*file)->getBufferStart(), (*file)->getBufferSize());
}

std::string ObjectCache::keyOf(mlir::ModuleOp module) {
  // Tests compile many modules in one process.
  static const std::optional<uint64_t> executable = hashExecutable();
  if (!executable)
    return {};
  SmallString<0> text;
  raw_svector_ostream stream(text);
  // Descriptions of kernels contain names from locations. Custom forms may omit attributes.
  module.print(stream, mlir::OpPrintingFlags().enableDebugInfo().printGenericOpForm());
  stream << '\0' << LLVM_VERSION_STRING << '\0' << *executable;
  return hexadecimal(rt::hashBytes(text.data(), text.size()));
}

std::string ObjectCache::pathOf(StringRef key) const {
  return (folder + "/" + key + kEnding).str();
}

/// A file is an object followed by its hash.
std::optional<SmallString<0>> ObjectCache::find(StringRef key) const {
  std::string path = pathOf(key);
  ErrorOr<std::unique_ptr<MemoryBuffer>> file =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  StringRef object = (*file)->getBuffer();
  if (object.size() < sizeof(uint64_t))
    return std::nullopt;
  uint64_t hash = support::endian::read64le(object.end() - sizeof hash);
  object = object.drop_back(sizeof hash);
  if (rt::hashBytes(object.data(), object.size()) != hash)
    return std::nullopt;
  rt::markUsed(path);
  return SmallString<0>(object);
}

Error ObjectCache::store(StringRef key, StringRef object) const {
  std::string path = pathOf(key), hint = std::string("set ") + kVariable + " to another folder";
  rt::Result<std::unique_ptr<rt::TemporaryFile>> file = rt::TemporaryFile::create(path, {}, hint);
  if (!file)
    return createStringError(path + ": " + file.error().message);
  char hash[sizeof(uint64_t)];
  support::endian::write64le(hash, rt::hashBytes(object.data(), object.size()));
  if (!(*file)->writeAt(bytesOf(object), 0) ||
      !(*file)->writeAt(bytesOf({hash, sizeof hash}), object.size()) || !(*file)->commit())
    return createStringError(path + ": " + rt::cannotBeWritten(errno, hint));
  std::vector<rt::CachedFile> files = rt::filesByLastUse(folder);
  std::erase_if(
      files, [](const rt::CachedFile &file) { return !StringRef(file.path).ends_with(kEnding); });
  rt::removeLeastRecentlyUsed(files, limit);
  return Error::success();
}

} // namespace mica::cpu
