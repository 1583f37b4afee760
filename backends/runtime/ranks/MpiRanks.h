// Ranks that mpirun has started.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_MPIRANKS_H
#define MICA_BACKENDS_RUNTIME_RANKS_MPIRANKS_H

#include "backends/runtime/abi/Communicator.h"
#include "backends/runtime/ranks/RankMonitor.h"
#include "backends/runtime/ranks/SharedMemoryRanks.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace mica::rt {

/// The rank of this process according to the environment that mpirun has set; nullopt if this
/// process was not started by it. Does not use MPI.
std::optional<int64_t> rankFromEnvironment();

/// The number of ranks that mpirun has started, according to the environment; 1 without mpirun.
int64_t rankCountFromEnvironment();

/// The ranks of one host exchange through shared memory, those of several by MPI. A rank that has
/// failed, or hangs, ends the process: with `fail`, also by the functions below.
class MpiRanks final : public Communicator {
public:
  /// Opens the plug-in for the implementation of MPI that has started this process, which is next
  /// to the program, and starts MPI. Fails if this process was not started by mpirun of an
  /// implementation for which there is a plug-in.
  static Result<std::unique_ptr<MpiRanks>> start();
  /// Called before the process ends with an error. If mpirun has started it, and the other ranks
  /// may wait for it, because they have not finished, mpirun ends them.
  static void abandon();

  /// Ends MPI; waits until all ranks have called it. If a rank ends without it, mpirun ends all
  /// ranks. If MPI itself does not end, the process exits with `status`.
  void finish(int status);

  int64_t rank() const override { return self; }
  int64_t size() const override { return count; }
  std::string describe(int64_t rank) const override;
  Status allGather(const void *part, uint64_t bytes, void *all) override;
  Status allGatherInPieces(const void *part, uint64_t bytes,
                           const std::function<void(const Received &)> &take) override;
  Status broadcast(void *data, uint64_t bytes) override;
  void setOversubscribed(bool is) override;
  void setComputing(bool is) override;
  void onFailure(std::function<void(const Error &)> callback) override;
  /// Rank 0 first calls the callback of onFailure; other ranks tell rank 0, which gets time to do
  /// so.
  [[noreturn]] void fail(const Error &error) override;

private:
  explicit MpiRanks(const MicaMpi &mpi) : mpi(mpi) {}
  Status check(int error) const;
  Status startMonitor();
  template <typename Move> Status exchange(const Move &move);

  const MicaMpi &mpi;
  int64_t self = 0, count = 1;
  std::vector<std::string> hosts;            ///< of all ranks; empty until these are known
  std::unique_ptr<SharedMemoryRanks> shared; ///< null: on several hosts
  std::mutex failing;                        ///< protects the following member; locked by a failure
  std::function<void(const Error &)> callback;
  std::unique_ptr<RankMonitor> monitor; ///< null until all ranks have started
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_MPIRANKS_H
