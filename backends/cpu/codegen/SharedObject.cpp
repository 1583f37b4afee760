//===- SharedObject.cpp - linking by lld, and looking at the result -------===//

#include "backends/cpu/codegen/NativeCode.h"

#include "lld/Common/Driver.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>
#include <set>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace mica::cpu {

namespace {

/// A file in the folder for temporary ones. It goes with this object, or with a signal that ends
/// the process.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef ending) {
    // Watched before it is there: no signal finds it unprotected.
    error = sys::fs::getPotentiallyUniqueTempFileName("mica-model", ending, path);
    if (!error)
      sys::RemoveFileOnSignal(path);
  }

  ~TemporaryFile() {
    (void)sys::fs::remove(path);
    sys::DontRemoveFileOnSignal(path);
  }

  Error write(StringRef bytes) {
    if (!error) {
      raw_fd_ostream stream(path, error, sys::fs::CD_CreateNew);
      if (!error) {
        stream << bytes;
        stream.close();
        error = stream.error();
        stream.clear_error();
      }
    }
    return error ? createStringError("the temporary file " + path + " cannot be written (" +
                                     error.message() + "), free space or set TMPDIR")
                 : Error::success();
  }

  const char *c_str() { return path.c_str(); }

private:
  SmallString<128> path;
  std::error_code error;
};

} // namespace

/// lld keeps global state: one link at a time.
static Error runLld(ArrayRef<const char *> arguments) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  std::string output;
  raw_string_ostream stream(output);
  lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
  if (result.retCode != 0)
    return createStringError("the model's code cannot be linked: " + StringRef(output).trim());
  return Error::success();
}

Expected<SmallVector<char, 0>> linkSharedObject(StringRef object) {
  TemporaryFile input("o"), output("so");
  if (Error error = input.write(object))
    return error;
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "-soname",
                             "mica-model",
                             "-z",
                             "now",
                             "-z",
                             "noexecstack",
                             "--gc-sections",
                             "--build-id=none",
                             "--threads=1",
                             "--hash-style=gnu",
                             "-o",
                             output.c_str(),
                             input.c_str()};
  if (Error error = runLld(arguments))
    return error;
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(
      output.c_str(), /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!linked)
    return createStringError("the linked code cannot be read: " + linked.getError().message());
  StringRef bytes = (*linked)->getBuffer();
  return SmallVector<char, 0>(bytes.begin(), bytes.end());
}

Expected<std::vector<std::string>> undefinedSymbols(StringRef elf) {
  Expected<std::unique_ptr<object::ObjectFile>> file =
      object::ObjectFile::createELFObjectFile(MemoryBufferRef(elf, "model"));
  if (!file)
    return file.takeError();
  std::set<std::string> names;
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty())
      names.insert(name->str());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Error checkUndefinedSymbols(StringRef elf, ArrayRef<StringRef> allowed) {
  Expected<std::vector<std::string>> names = undefinedSymbols(elf);
  if (!names)
    return names.takeError();
  std::string surplus;
  for (const std::string &name : *names)
    if (!llvm::is_contained(allowed, name))
      surplus += (surplus.empty() ? "" : ", ") + name;
  if (surplus.empty())
    return Error::success();
  return createStringError("the model's code calls " + surplus + ", which no program has");
}

} // namespace mica::cpu
