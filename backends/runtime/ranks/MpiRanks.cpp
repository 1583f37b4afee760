#include "backends/runtime/ranks/MpiRanks.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/ranks/SharedMemoryRanks.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace mica::rt {

namespace {
/// An implementation of MPI.
struct Implementation {
  const char *name;
  const char *rankVariable, *countVariable; ///< set by its mpirun
  const char *plugin;                       ///< file name
};
constexpr Implementation implementations[] = {
    {"OpenMPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mica-mpi-openmpi.so"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "mica-mpi-mpich.so"},
};

/// The implementation that has started this process; null if none has.
const Implementation *findImplementation() {
  for (const Implementation &implementation : implementations)
    if (std::getenv(implementation.rankVariable))
      return &implementation;
  return nullptr;
}

volatile std::sig_atomic_t statusAtDeadline;

/// Ends the process with `status` if MPI starts or ends for longer than `seconds`: it waits for all
/// ranks, and heartbeats need it. mpirun then ends all ranks, unless it is MPICH's and the status
/// 0.
class Deadline {
public:
  Deadline(unsigned seconds, int status) {
    statusAtDeadline = status;
    std::signal(SIGALRM, [](int) {
      constexpr std::string_view message =
          "mica: error: MPI waits for another rank, which does not start or end; see the messages "
          "of the other ranks, and whether their hosts reach each other\n";
      if (statusAtDeadline != 0) {
        [[maybe_unused]] ssize_t written = write(STDERR_FILENO, message.data(), message.size());
      }
      removeTemporaries();
      _exit(statusAtDeadline);
    });
    alarm(seconds);
  }
  ~Deadline() { alarm(0); }
  Deadline(const Deadline &) = delete;
  Deadline &operator=(const Deadline &) = delete;
};
/// Hosts may be reached one after the other.
constexpr unsigned startSeconds = 60;
/// All ranks have announced that they end.
constexpr unsigned endSeconds = 10;

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

int64_t rankCountFromEnvironment() {
  const Implementation *implementation = findImplementation();
  const char *count = implementation ? std::getenv(implementation->countVariable) : nullptr;
  return count ? std::strtoll(count, nullptr, 10) : 1;
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
  Deadline deadline(startSeconds, EXIT_FAILURE);
  std::unique_ptr<MpiRanks> ranks(new MpiRanks(*mpi));
  if (Status started = ranks->check(mpi->start(&ranks->self, &ranks->count)); !started)
    return started.error();
  void *memory = nullptr;
  if (Status shared = ranks->check(mpi->share(SharedMemoryRanks::bytesFor(ranks->count), &memory));
      !shared)
    return shared.error();
  if (memory)
    ranks->shared = std::make_unique<SharedMemoryRanks>(memory, ranks->self, ranks->count);
  if (Status started = ranks->startMonitor(); !started)
    return started.error();
  return ranks;
}

std::string MpiRanks::describe(int64_t rank) const {
  return hosts.empty() ? Communicator::describe(rank)
                       : rankOnHost(rank, hosts[static_cast<size_t>(rank)]);
}

Status MpiRanks::startMonitor() {
  std::array<char, 256> own = {};
  std::string name = hostName();
  std::copy_n(name.begin(), std::min(name.size(), own.size() - 1), own.begin());
  std::vector<std::array<char, 256>> names(static_cast<size_t>(count));
  if (Status done = allGather(own.data(), own.size(), names.data()); !done)
    return done;
  for (const std::array<char, 256> &each : names)
    hosts.emplace_back(each.data());
  monitor = std::make_unique<RankMonitor>(
      mpi, self, hosts, [this](const Error &error) { fail(error); }, RankMonitor::Timing());
  return {};
}

void MpiRanks::finish(int status) {
  monitor->finish();
  // All ranks have done what they had to do. MPICH 4.0 may hang in MPI_Finalize over TCP.
  std::fflush(nullptr);
  Deadline deadline(endSeconds, status);
  shared.reset();
  mpi.finish();
}

Status MpiRanks::check(int error) const {
  if (error == 0)
    return {};
  char text[MICA_MPI_MESSAGE_BYTES];
  mpi.message(error, text);
  // The messages of other ranks begin with their names, see runOnRanks.
  return Error{(self == 0 ? describe(self) + ": " : "") + "MPI failed: " + text};
}

/// `move` waits for other ranks.
template <typename Move> Status MpiRanks::exchange(const Move &move) {
  if (monitor)
    monitor->setExchanging(true);
  Status done = move();
  if (monitor)
    monitor->setExchanging(false);
  if (!done)
    fail(done.error());
  return {};
}

Status MpiRanks::allGather(const void *part, uint64_t bytes, void *all) {
  return exchange([&] {
    return shared ? shared->allGather(part, bytes, all) : check(mpi.allGather(part, bytes, all));
  });
}

Status MpiRanks::broadcast(void *data, uint64_t bytes) {
  return exchange(
      [&] { return shared ? shared->broadcast(data, bytes) : check(mpi.broadcast(data, bytes)); });
}

void MpiRanks::setCrowded(bool is) {
  if (shared)
    shared->setCrowded(is);
  mpi.setCrowded(is);
}

void MpiRanks::setComputing(bool is) { monitor->setComputing(is); }

void MpiRanks::onFailure(std::function<void(const Error &)> wanted) {
  std::lock_guard lock(failing);
  callback = std::move(wanted);
}

void MpiRanks::fail(const Error &error) {
  // Locked until the process has ended: only the first failure is reported.
  failing.lock();
  if (!error.message.empty()) // otherwise it has been reported
    reportError(error.message);
  if (self > 0 && monitor)
    monitor->tellFailure();
  else if (callback)
    callback(error);
  removeTemporaries();
  _exit(1);
}

} // namespace mica::rt
