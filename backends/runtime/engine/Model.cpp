#include "backends/runtime/engine/Model.h"
#include "backends/runtime/engine/RankMessage.h"
#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace mica::rt {

Result<Manifest> readManifest(const program::ProgramFile &file) {
  Result<std::vector<std::byte>> bytes = file.read(program::SectionKind::Manifest);
  if (!bytes)
    return bytes.error();
  return parseManifest({reinterpret_cast<const char *>(bytes->data()), bytes->size()});
}

/// Fails unless `size` ranks run the program; 0: mpirun has not started it.
static Status checkCount(const Manifest &manifest, int64_t size) {
  if (std::max<int64_t>(size, 1) == manifest.ranks)
    return {};
  std::string count = std::to_string(manifest.ranks);
  return Error{"the program is for " + count + " ranks" +
               (size == 0 ? "" : ", not for " + std::to_string(size)) +
               "; start it with mpirun -n " + count};
}

Status checkRanks(const program::ProgramFile &file, const Manifest &manifest, Communicator &ranks) {
  // The same on all ranks, so that all of them fail: a program for another number of ranks is
  // another program.
  struct Identity {
    uint64_t program;
    int64_t ranks;
  };
  Identity own{file.identity(), manifest.ranks};
  std::vector<Identity> all(static_cast<size_t>(ranks.size()));
  if (Status done = ranks.allGather(&own, sizeof own, all.data()); !done)
    return done;
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].program != all.front().program)
      return Error{ranks.describe(static_cast<int64_t>(rank)) +
                   " runs another program than rank 0" +
                   (all[rank].ranks == all.front().ranks
                        ? ""
                        : ", for " + std::to_string(all[rank].ranks) + " ranks") +
                   "; copy the same file to all hosts"};
  return checkCount(manifest, ranks.size());
}

/// Creates a memory file that dlopen can open by name; -1 with errno on failure.
static int memoryFile(std::span<const std::byte> bytes) {
  // Linux 6.3 and later may forbid executable memory files unless they are requested; older kernels
  // do not know the flag.
  int fd = memfd_create("mica-model", MFD_CLOEXEC | MFD_EXEC);
  if (fd < 0 && errno == EINVAL)
    fd = memfd_create("mica-model", MFD_CLOEXEC);
  while (fd >= 0 && !bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      int reason = errno;
      close(fd);
      errno = reason;
      return -1;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return fd;
}

Status Model::loadCode() {
  Result<std::vector<std::byte>> code = program.read(program::SectionKind::Code);
  if (!code)
    return code.error();
  codeFile = memoryFile(*code);
  if (codeFile < 0) {
    // Memory files are subject to the file size limit.
    const char *hint = errno == EFBIG ? "; raise the limit of file sizes (ulimit -f)"
                                      : "; free memory or raise the limit (ulimit -v)";
    return Error{std::string("cannot put the model's code into memory: ") + std::strerror(errno) +
                 hint};
  }
  library = dlopen(("/proc/self/fd/" + std::to_string(codeFile)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Error{std::string("cannot load the model's code (") + (reason ? reason : "") +
                 "); free memory or raise the limit (ulimit -v), "
                 "or compile it again"};
  }
  entry = reinterpret_cast<Forward>(dlsym(library, "mica_forward"));
  if (!entry)
    return Error{"the model's code has no function mica_forward; compile it again"};
  return {};
}

/// Whether weights may be read from disk in huge pages. Not if memory is scarce, with the weights
/// of all ranks of this machine, and a token needs only some of the weights (selected experts),
/// because other experts in the same huge pages would be read as well.
static bool readsInHugePages(const Manifest &manifest, uint64_t ranksOnHost) {
  auto bytes = static_cast<double>(manifest.weightBytes);
  double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return manifest.cost.weightBytesPerToken >= 0.9 * bytes ||
         bytes * static_cast<double>(ranksOnHost) <= memory / 2;
}

/// The part of the section of weights that the rank has.
program::Section Model::ownWeights() const {
  const program::Section *all = program.layout().find(program::SectionKind::Weights);
  if (!all)
    return {};
  program::Section own = *all;
  if (description.ranks > 1) {
    own.offset +=
        static_cast<uint64_t>(ranks->rank()) * program::rankStride(description.weightBytes);
    own.size = description.weightBytes;
  }
  return own;
}

Status Model::mapWeights() {
  Result<Mapping> mapping =
      program.map(ownWeights(), readsInHugePages(description, resources.ranksOnHost));
  if (!mapping)
    return mapping.error();
  weightMapping = *std::move(mapping);
  weightBytes = weightMapping.bytes();
  return {};
}

Status Model::readWeights() {
  program::Section section = ownWeights();
  uint64_t size = section.size;
  Result<Memory> memory = Memory::reserve(size, Pages::Huge, "leave out --huge-pages");
  if (!memory)
    return memory.error();
  weightMemory = *std::move(memory);
  std::span<std::byte> bytes(static_cast<std::byte *>(weightMemory.data()), size);
  if (size > 0)
    if (Status read = program.source().readAt(section.offset, bytes); !read)
      return read;
  weightBytes = bytes;
  if (size >= hugePage && weightsInHugePages() < size / 2)
    reportNote("--huge-pages: the kernel provides few or no huge pages (see "
               "/sys/kernel/mm/transparent_hugepage/enabled); weights use small pages");
  return {};
}

uint64_t Model::memory(const std::string &root) const {
  return resources.memory ? *resources.memory : availableMemory(root);
}

uint64_t Model::memoryBesidesWeights(const std::string &root) const {
  uint64_t available = memory(root);
  // A copy in huge pages was not allocated yet when the ranks shared the memory.
  uint64_t weights = resources.memory ? weightBytes.size() : weightMapping.bytes().size();
  return available - std::min(available, weights);
}

Status Model::checkWeights() const {
  const program::Section *section = program.layout().find(program::SectionKind::Weights);
  uint64_t present = section ? section->size : 0;
  uint64_t stated = program::bytesOfRanks(description.weightBytes, description.ranks);
  if (description.weightBytes != 0 && stated != present)
    return Error{"the program holds " + std::to_string(present) +
                 " bytes of weights and its manifest says " + std::to_string(stated) +
                 "; compile it again"};
  return {};
}

Status Model::verifyWeights() const {
  Computation computation(ranks);
  const program::Section *section = program.layout().find(program::SectionKind::Weights);
  if (!section)
    return {};
  // The checksum is that of the weights of all ranks.
  if (description.ranks > 1)
    return program::verifySection(program.source(), *section);
  program::Section inMemory = *section;
  inMemory.offset = 0;
  return program::verifySection(MemorySource(weightBytes), inMemory);
}

Status Model::checkReadable() const {
  if (readErrors && readErrors->failed())
    return Error{std::string(readErrorMessage)};
  return {};
}

Status Model::start(const Device &device) {
  Result<std::unique_ptr<Runtime>> started = device.start(resources.threads, manifest().features);
  if (!started)
    return started.error();
  ownRuntime = *std::move(started);
  ownRuntime->setCommunicator(ranks);
  if (resources.areOversubscribed)
    ownRuntime->pool().setOversubscribed(true);
  const auto *needed = static_cast<const int64_t *>(symbol("mica_runtime_bytes"));
  int64_t size = ownRuntime->table().size;
  if (!needed || *needed > size)
    return Error{"the model's code needs a table of runtime functions of " +
                 (needed ? std::to_string(*needed) : "unknown") + " bytes, and this one has " +
                 std::to_string(size) + "; compile it again"};
  return {};
}

Result<std::unique_ptr<Model>> Model::load(program::ProgramFile file, const Device &device,
                                           const Resources &resources, Pages weights,
                                           Communicator *ranks) {
  Computation computation(ranks);
  Result<Manifest> manifest = readManifest(file);
  if (!manifest)
    return manifest.error();
  if (Status able = device.check(manifest->cpu, manifest->features); !able)
    return able.error();
  std::unique_ptr<Model> model(new Model(std::move(file), *std::move(manifest), resources, ranks));
  if (Status known = checkCount(model->manifest(), ranks ? ranks->size() : 0); !known)
    return known.error();
  // Before weights are mapped, because the ranks' parts depend on their sizes.
  if (Status whole = model->checkWeights(); !whole)
    return whole.error();
  if (Status loaded = model->loadCode(); !loaded)
    return loaded.error();
  if (Status there = weights == Pages::Huge ? model->readWeights() : model->mapWeights(); !there)
    return there.error();
  if (Status started = model->start(device); !started)
    return started.error();
  model->isLoaded = true;
  return model;
}

const void *Model::symbol(const char *name) const { return dlsym(library, name); }

Model::~Model() {
  // A rank that has failed ends the program anyway.
  if (isLoaded && isLeader())
    (void)RankMessage::send(*ranks, {});
  // Stop all threads that could run the code first.
  ownRuntime.reset();
  if (library)
    dlclose(library);
  if (codeFile >= 0)
    close(codeFile);
}

} // namespace mica::rt
