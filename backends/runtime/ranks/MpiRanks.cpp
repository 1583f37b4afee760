#include "backends/runtime/ranks/MpiRanks.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/syscall.h>
#include <thread>
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
const char *volatile messageAtDeadline;

constexpr const char *waitsForRank =
    "mica: error: MPI waits for another rank, which does not start or end; see the messages of the "
    "other ranks, and whether their hosts reach each other\n";
/// What follows is a message of mpirun about a rank that has ended without MPI_Finalize.
constexpr const char *doesNotEnd =
    "mica: note: the output is complete, but MPI does not end; mpirun therefore returns an error\n";

/// Ends the process with `status` and `message` if starting or ending MPI takes longer than
/// `seconds`: it waits for all ranks, and heartbeats need it. mpirun then ends all ranks, unless it
/// is MPICH's and the status 0.
class Deadline {
public:
  Deadline(unsigned seconds, int status, const char *message) {
    statusAtDeadline = status;
    messageAtDeadline = message;
    std::signal(SIGALRM, [](int) {
      const char *message = messageAtDeadline;
      [[maybe_unused]] ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
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
constexpr unsigned endSeconds = 2;

/// Whether all ranks have done what they had to do: none is to be ended because of another one.
bool haveAllFinished = false;

/// Before the process ends with an error: OpenMPI's mpirun ends all ranks then. MPICH's does so
/// only on this host, and if MPI has been started; it has to be told, as by MPI_Abort (PMI-1),
/// which must not be called while another thread uses MPI.
void tellMpirunToAbort() {
  const char *connection = std::getenv("PMI_FD");
  // Hydra, unlike other process managers, sets both, and understands this text.
  if (!connection || !std::getenv("MPI_LOCALNRANKS"))
    return;
  // It does not read messages of ranks any more.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  dprintf(static_cast<int>(std::strtol(connection, nullptr, 10)), "cmd=abort exitcode=1\n");
}

/// Whether a process is mpirun of OpenMPI or its helper on a host, by its name.
bool isMpirun(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  constexpr std::string_view beginnings[] = {"mpirun", "mpiexec", "orterun", "orted", "prte"};
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// Before a rank ends because another host may be unreachable: OpenMPI's mpirun waits for such
/// hosts. A new process ends the rank's parent, if that is mpirun or its helper on this host and
/// has not ended soon; the helpers on other hosts end when they lose their connection. A shell or
/// debugger between mpirun and the rank is left alone. SIGTERM has no effect: mpirun is already
/// aborting the run. Its session folder in /tmp remains.
void endMpirunSoon() {
  constexpr int patience = 600; // milliseconds
  pid_t parent = getppid();
  if (!std::getenv("OMPI_COMM_WORLD_RANK") || !isMpirun(parent))
    return;
  // Unlike a number, it never refers to a later process.
  int mpirun = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (mpirun < 0 || fork() != 0)
    return;
  // Only what signal handlers may do as well: other threads may have had locks.
  setsid(); // mpirun ends the processes of the rank's group
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    close(stream); // mpirun waits for their end
  pollfd ended{mpirun, POLLIN, 0};
  if (poll(&ended, 1, patience) != 1)
    syscall(SYS_pidfd_send_signal, mpirun, SIGKILL, nullptr, 0);
  _exit(0);
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
  Deadline deadline(startSeconds, EXIT_FAILURE, waitsForRank);
  std::unique_ptr<MpiRanks> ranks(new MpiRanks(*mpi));
  ranks->self = rankFromEnvironment().value_or(0);
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

void MpiRanks::abandon() {
  if (!haveAllFinished)
    tellMpirunToAbort();
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
  monitor->start(); // uses it
  return {};
}

void MpiRanks::finish(int status) {
  monitor->finish();
  haveAllFinished = true;
  // MPICH 4.0 may hang in MPI_Finalize over TCP; its mpirun returns the status.
  std::fflush(nullptr);
  const char *message = status != EXIT_SUCCESS                ? waitsForRank
                        : std::getenv("OMPI_COMM_WORLD_RANK") ? doesNotEnd
                                                              : "";
  Deadline deadline(endSeconds, status, message);
  shared.reset();
  mpi.finish();
}

Status MpiRanks::check(int error) const {
  if (error == 0)
    return {};
  char text[MICA_MPI_MESSAGE_BYTES];
  mpi.message(error, text);
  // When all have started, the messages of other ranks begin with their names, see runOnRanks.
  bool isNamed = self > 0 && monitor;
  return Error{(isNamed ? "" : rankOnHost(self, hostName()) + ": ") + "MPI failed: " + text};
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

Status MpiRanks::allGatherInPieces(const void *part, uint64_t bytes,
                                   const std::function<void(const Received &)> &take) {
  if (!shared)
    return Communicator::allGatherInPieces(part, bytes, take);
  return exchange([&] { return shared->allGatherInPieces(part, bytes, take); });
}

Status MpiRanks::broadcast(void *data, uint64_t bytes) {
  return exchange(
      [&] { return shared ? shared->broadcast(data, bytes) : check(mpi.broadcast(data, bytes)); });
}

void MpiRanks::setOversubscribed(bool is) {
  if (shared)
    shared->setOversubscribed(is);
  mpi.setOversubscribed(is);
}

void MpiRanks::setComputing(bool is) { monitor->setComputing(is); }

void MpiRanks::onFailure(std::function<void(const Error &)> wanted) {
  std::lock_guard lock(failing);
  callback = std::move(wanted);
}

void MpiRanks::fail(const Error &error) {
  // Locked until the process has ended: only the first failure is reported.
  failing.lock();
  // The end of a rank that has reported its failure is no news.
  bool isReported = error.message.empty() || (shared && shared->isFailureAnnounced());
  if (!isReported)
    reportError(error.message);
  if (self > 0 && monitor)
    monitor->tellFailure([&] { return shared && shared->hasEnded(0); });
  else if (callback)
    callback(error);
  removeTemporaries();
  if (shared)
    shared->announceFailure();
  tellMpirunToAbort();
  if (!shared && monitor && monitor->hasSilentPeer())
    endMpirunSoon();
  _exit(1);
}

} // namespace mica::rt
