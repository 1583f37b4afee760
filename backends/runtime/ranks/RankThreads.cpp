#include "backends/runtime/ranks/RankThreads.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <map>
#include <unistd.h>
#include <vector>

namespace mica::rt {

namespace {
/// What the others know of a rank.
struct Rank {
  uint64_t host;       ///< the same for all ranks of a host
  uint64_t processors; ///< the same for all ranks that may use the same processors
  uint64_t usable;     ///< the number of these processors
  uint64_t wanted;     ///< threads; 0: the default
};
} // namespace

static Rank describeOwn(std::optional<unsigned> wanted) {
  std::string host = hostName();
  std::vector<size_t> processors = affinity();
  Hasher ofHost, ofProcessors;
  for (Hasher *hasher : {&ofHost, &ofProcessors})
    hasher->update(std::as_bytes(std::span(host)));
  ofProcessors.update(std::as_bytes(std::span(processors)));
  return {ofHost.digest(), ofProcessors.digest(), processors.size(), wanted.value_or(0)};
}

/// The processors that the ranks of a host may use together, if those of two ranks are the same or
/// different ones.
static size_t usableOnHost(const std::vector<Rank> &all, uint64_t host) {
  std::map<uint64_t, size_t> usable;
  for (const Rank &rank : all)
    if (rank.host == host)
      usable[rank.processors] = rank.usable;
  size_t sum = 0;
  for (auto [processors, count] : usable)
    sum += count;
  return sum;
}

Result<RankThreads> threadsOfRank(Communicator &ranks, std::optional<unsigned> wanted) {
  Rank own = describeOwn(wanted);
  std::vector<Rank> all(static_cast<size_t>(ranks.size()));
  if (Status done = ranks.allGather(&own, sizeof own, all.data()); !done)
    return done.error();
  // mpirun binds its children, not itself.
  size_t usable = usableOnHost(all, own.host),
         available = std::max(usable, affinity(getppid()).size());
  std::erase_if(all, [&](const Rank &rank) { return rank.processors != own.processors; });
  unsigned ofDefault = std::max(1u, defaultThreads() / static_cast<unsigned>(all.size()));
  uint64_t total = 0;
  for (const Rank &rank : all)
    total += rank.wanted ? rank.wanted : ofDefault;
  return RankThreads{wanted.value_or(ofDefault), total > processorsAllowed(), usable, available};
}

} // namespace mica::rt
