#include "backends/runtime/ranks/MpiRanks.h"
#include "backends/runtime/ranks/SharedMemoryRanks.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace mica::rt {

namespace {
/// An implementation of MPI.
struct Implementation {
  const char *name;
  const char *rankVariable; ///< set by its mpirun
  const char *plugin;       ///< file name
};
constexpr Implementation implementations[] = {
    {"OpenMPI", "OMPI_COMM_WORLD_RANK", "mica-mpi-openmpi.so"},
    {"MPICH", "PMI_RANK", "mica-mpi-mpich.so"},
};

/// The implementation that has started this process; null if none has.
const Implementation *findImplementation() {
  for (const Implementation &implementation : implementations)
    if (std::getenv(implementation.rankVariable))
      return &implementation;
  return nullptr;
}

/// The folder of the program.
std::filesystem::path ownFolder() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}
} // namespace

std::optional<int64_t> rankFromEnvironment() {
  const Implementation *implementation = findImplementation();
  if (!implementation)
    return std::nullopt;
  return std::strtoll(std::getenv(implementation->rankVariable), nullptr, 10);
}

Result<std::unique_ptr<MpiRanks>> MpiRanks::start() {
  const Implementation *implementation = findImplementation();
  if (!implementation)
    return Error{"was not started by mpirun of OpenMPI or MPICH"};
  std::string name = implementation->name, path = ownFolder() / implementation->plugin;
  // Global, because implementations load parts of their own that use their library.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char *reason = dlerror();
    return Error{"cannot use " + name + " (" + (reason ? reason : path) +
                 "); install it, and copy " + implementation->plugin +
                 " from the folder of `mica-launcher` next to the program"};
  }
  auto plugin = reinterpret_cast<MicaMpiPlugin>(dlsym(library, MICA_MPI_SYMBOL));
  const MicaMpi *mpi = plugin ? plugin() : nullptr;
  if (!mpi || mpi->abi != MICA_MPI_ABI)
    return Error{path + " is for another version of Mica; copy the file of the installation that " +
                 "has compiled the program"};
  std::unique_ptr<MpiRanks> ranks(new MpiRanks(*mpi));
  if (Status started = ranks->check(mpi->start(&ranks->self, &ranks->count)); !started)
    return started.error();
  void *memory = nullptr;
  if (Status shared = ranks->check(mpi->share(SharedMemoryRanks::bytesFor(ranks->count), &memory));
      !shared)
    return shared.error();
  if (memory)
    ranks->shared = std::make_unique<SharedMemoryRanks>(memory, ranks->self, ranks->count);
  return ranks;
}

void MpiRanks::finish() {
  shared.reset();
  mpi.finish();
}

Status MpiRanks::check(int error) const {
  if (error == 0)
    return {};
  char text[MICA_MPI_MESSAGE_BYTES];
  mpi.message(error, text);
  return Error{"rank " + std::to_string(self) + ": MPI failed: " + text};
}

Status MpiRanks::allGather(const void *part, uint64_t bytes, void *all) {
  return shared ? shared->allGather(part, bytes, all) : check(mpi.allGather(part, bytes, all));
}

Status MpiRanks::broadcast(void *data, uint64_t bytes) {
  return shared ? shared->broadcast(data, bytes) : check(mpi.broadcast(data, bytes));
}

} // namespace mica::rt
