//===- SharedObject.cpp - linking by lld, and looking at the result -------===//

#include "backends/cpu/codegen/NativeCode.h"

#include "lld/Common/Driver.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace mica::cpu {

/// Closes a descriptor when it goes.
struct Descriptor {
  explicit Descriptor(int number = -1) : number(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  void reset() {
    if (number >= 0)
      ::close(number);
    number = -1;
  }
  /// The name by which this process can open it.
  std::string path() const { return "/proc/self/fd/" + std::to_string(number); }
  int number;
};

/// The objects are made here, so that what linking lacks is memory or files.
static Error linkError(const Twine &why) {
  return createStringError("the model's code cannot be linked: " + why +
                           "; free memory or raise the limits (ulimit -v, ulimit -n)");
}

static Error systemError(StringRef what) {
  return linkError(what + ": " + std::error_code(errno, std::generic_category()).message());
}

/// lld keeps global state: one link at a time.
static Error runLld(ArrayRef<const char *> arguments) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  std::string output;
  raw_string_ostream stream(output);
  lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
  if (result.retCode != 0)
    return linkError(StringRef(output).trim());
  return Error::success();
}

Expected<SmallVector<char, 0>> linkSharedObject(StringRef object) {
  // lld wants names of files. These are memory and a pipe: nothing is left by whatever ends us, and
  // no folder for temporary files can be full.
  Descriptor input(memfd_create("mica-model.o", MFD_CLOEXEC));
  if (input.number < 0)
    return systemError("memory for the object");
  {
    raw_fd_ostream stream(input.number, /*shouldClose=*/false);
    stream << object;
    stream.flush();
    if (std::error_code failed = stream.error()) {
      stream.clear_error();
      return linkError(failed.message());
    }
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return systemError("a pipe");
  Descriptor reading(ends[0]), writing(ends[1]);
  SmallVector<char, 0> linked;
  std::thread reader([&] {
    char buffer[1 << 16];
    for (;;) {
      ssize_t got = ::read(reading.number, buffer, sizeof buffer);
      if (got > 0)
        linked.append(buffer, buffer + got);
      else if (got == 0 || errno != EINTR)
        return;
    }
  });
  std::string inputPath = input.path(), outputPath = writing.path();
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
                             outputPath.c_str(),
                             inputPath.c_str()};
  Error error = runLld(arguments);
  writing.reset();
  reader.join();
  if (error)
    return std::move(error);
  return linked;
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
