// Detects ranks that hang.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_RANKMONITOR_H
#define MICA_BACKENDS_RUNTIME_RANKS_RANKMONITOR_H

#include "backends/runtime/ranks/MpiPlugin.h"
#include "backends/runtime/support/Result.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mica::rt {

/// A thread of each rank sends heartbeats: rank 0 to all others, which send theirs to rank 0. They
/// are independent of what the rank computes, so a rank that is slow, or whose other threads wait
/// for a processor, is not mistaken for one that hangs. A rank fails
/// - if no heartbeat has arrived from it: the process or its host has stopped;
/// - if it computes, but its threads only wait, which the rank itself observes;
/// - if it does not leave a function of MPI, which keeps its heartbeats from being sent.
/// Time is measured by the iterations of the observing thread, so it does not pass while that, or
/// its host, is stopped. A host that stops while that of the observer runs has failed.
class RankMonitor {
public:
  struct Timing {
    std::chrono::milliseconds interval{100}; ///< between two heartbeats
    int64_t limit = 20;                      ///< the number of intervals after which a rank fails
  };
  /// Calls `fail` on the thread of `start`, at most once, with an error that names the rank and its
  /// host. `hosts`: of all ranks. MPI has been started, and has to be ended after `finish`.
  RankMonitor(const MicaMpi &mpi, int64_t rank, std::vector<std::string> hosts,
              std::function<void(const Error &)> fail, Timing timing);
  /// Stops without telling the others.
  ~RankMonitor();

  /// Begins to send and to expect heartbeats. Called once.
  void start();
  /// Waits until all ranks have called it; no rank fails afterwards.
  void finish();
  /// Tells rank 0 that this rank, another one, has failed. Returns when rank 0 has had enough time
  /// to end all ranks or `hasLeaderEnded`, at once if it does not respond.
  void tellFailure(const std::function<bool()> &hasLeaderEnded);
  /// Whether a rank does not respond.
  bool hasSilentPeer() const { return isPeerSilent; }

  /// What the rank does: see Communicator::setComputing. An exchange waits for other ranks.
  void setComputing(bool is) { is ? ++computations : --computations; }
  void setExchanging(bool is);

private:
  enum Beat : int64_t { Alive = 1, Failed, Over };
  struct Peer {
    int64_t rank;
    int64_t silent = 0; ///< iterations since a heartbeat arrived
    bool sentOver = false, gotOver = false;
  };

  void run();
  bool receive(bool counts);
  void send(Beat beat);
  void check();
  bool isOver() const;
  std::string limitText() const;
  void report(int64_t rank, const std::string &what);

  const MicaMpi &mpi;
  const int64_t self;
  const std::vector<std::string> hosts;
  const std::function<void(const Error &)> fail;
  const Timing timing;
  std::vector<Peer> peers; ///< used by the thread only
  // The same: iterations in which the rank should have computed, but slept, and in which it did
  // not leave MPI.
  int64_t asleep = 0, inMpi = 0;
  uint64_t lastExchange = 0;
  std::atomic<int> computations = 0; ///< in progress
  std::atomic<bool> exchanges = false;
  std::atomic<bool> isPeerSilent = false;
  std::atomic<uint64_t> exchange = 0; ///< the number of exchanges so far
  std::mutex mutex;                   ///< protects the following members
  std::condition_variable changed;
  bool stopping = false, finishing = false;
  std::thread thread;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_RANKMONITOR_H
