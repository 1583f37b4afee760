#include "backends/runtime/ranks/RankMonitor.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/ranks/ThreadStates.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <sstream>
#include <unistd.h>

namespace mica::rt {

RankMonitor::RankMonitor(const MicaMpi &mpi, int64_t rank, std::vector<std::string> hosts,
                         std::function<void(const Error &)> fail, Timing timing)
    : mpi(mpi), self(rank), hosts(std::move(hosts)), fail(std::move(fail)), timing(timing) {
  for (int64_t other = 0; other < static_cast<int64_t>(this->hosts.size()); ++other)
    if (other != self && (self == 0 || other == 0))
      peers.push_back({other});
}

void RankMonitor::start() {
  // Signals are handled by other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RankMonitor::~RankMonitor() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

void RankMonitor::finish() {
  {
    std::lock_guard lock(mutex);
    finishing = true;
  }
  changed.notify_one();
  thread.join();
}

void RankMonitor::setExchanging(bool is) {
  if (is)
    ++exchange;
  exchanges = is;
}

void RankMonitor::tellFailure(const std::function<bool()> &hasLeaderEnded) {
  // Longer than rank 0 needs to receive it and to answer requests in progress.
  constexpr int attempts = 12;
  constexpr std::chrono::milliseconds pause{50};
  for (int i = 0, sent = 0; i < attempts && !isPeerSilent && !hasLeaderEnded();
       ++i, std::this_thread::sleep_for(pause))
    if (!sent)
      mpi.sendBeat(0, Failed, &sent);
}

void RankMonitor::run() {
  pthread_setname_np(pthread_self(), "mica-ranks");
  // A rank that ends looks for the others, which are about to, more often than once an
  // interval.
  constexpr std::chrono::milliseconds endInterval{1};
  std::chrono::milliseconds rest = timing.interval;
  for (;;) {
    bool ends = false;
    {
      std::unique_lock lock(mutex);
      if (finishing)
        changed.wait_for(lock, endInterval, [&] { return stopping; });
      else
        changed.wait_for(lock, timing.interval, [&] { return stopping || finishing; });
      if (stopping)
        return;
      ends = finishing;
    }
    rest -= ends ? endInterval : timing.interval;
    bool isDue = rest.count() <= 0;
    if (isDue)
      rest = timing.interval;
    if (receive(isDue))
      send(ends ? Over : Alive);
    if (ends && isOver())
      return;
    if (isDue)
      check();
  }
}

/// Receives what has arrived. `counts`: an interval is over. Returns whether MPI can be used.
bool RankMonitor::receive(bool counts) {
  int64_t rank = -1, beat = 0;
  // A rank to which MPI has lost its connection is silent.
  while (mpi.receiveBeat(&rank, &beat) == 0 && rank >= 0) {
    auto peer = std::find_if(peers.begin(), peers.end(), [&](Peer &p) { return p.rank == rank; });
    if (peer == peers.end())
      continue;
    peer->silent = 0;
    peer->gotOver |= beat == Over;
    if (beat == Failed)
      report(rank, "has failed; see its messages");
  }
  constexpr int64_t mpiIsOccupied = -2;
  if (rank == mpiIsOccupied) {
    // Others may have sent heartbeats, and observe the silence of this rank.
    inMpi += counts;
    return false;
  }
  inMpi = 0;
  if (counts)
    for (Peer &peer : peers)
      ++peer.silent;
  return true;
}

void RankMonitor::send(Beat beat) {
  for (Peer &peer : peers) {
    int sent = 0;
    if (!peer.sentOver && mpi.sendBeat(peer.rank, beat, &sent) == 0 && sent && beat == Over)
      peer.sentOver = true;
  }
}

bool RankMonitor::isOver() const {
  return std::all_of(peers.begin(), peers.end(),
                     [](const Peer &peer) { return peer.sentOver && peer.gotOver; });
}

std::string RankMonitor::limitText() const {
  std::ostringstream time;
  time << std::chrono::duration<double>(timing.interval * timing.limit).count() << " s";
  return time.str();
}

void RankMonitor::check() {
  for (Peer &peer : peers)
    if (!peer.gotOver && peer.silent > timing.limit) {
      isPeerSilent = true;
      report(peer.rank, "has not responded for " + limitText() +
                            ": it has been stopped, or its host cannot be reached");
    }
  bool waits = computations == 0 || exchanges || exchange != lastExchange;
  lastExchange = exchange;
  asleep = waits || isProcessBusy(gettid()) ? 0 : asleep + 1;
  if (asleep > timing.limit)
    report(self, "hangs: while it loads the model or computes, none of its threads has run for " +
                     limitText());
  if (inMpi > timing.limit)
    report(self, "hangs: it has not left a function of MPI for more than " + limitText());
}

void RankMonitor::report(int64_t rank, const std::string &what) {
  fail(Error{rankOnHost(rank, hosts[static_cast<size_t>(rank)]) + " " + what});
}

} // namespace mica::rt
