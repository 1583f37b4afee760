#include "backends/runtime/ranks/RankThreads.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <vector>

namespace mica::rt {

/// A number that two ranks have in common if they may use the same processors.
static uint64_t processorsHash() {
  std::string host = hostName();
  std::vector<size_t> processors = affinity();
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(host)));
  hasher.update(std::as_bytes(std::span(processors)));
  return hasher.digest();
}

Result<RankThreads> threadsOfRank(Communicator &ranks, std::optional<unsigned> wanted) {
  struct Rank {
    uint64_t processors, wanted; // 0: the default
  };
  Rank own{processorsHash(), wanted.value_or(0)};
  std::vector<Rank> all(static_cast<size_t>(ranks.size()));
  if (Status done = ranks.allGather(&own, sizeof own, all.data()); !done)
    return done.error();
  std::erase_if(all, [&](const Rank &rank) { return rank.processors != own.processors; });
  unsigned ofDefault = std::max(1u, defaultThreads() / static_cast<unsigned>(all.size()));
  uint64_t total = 0;
  for (const Rank &rank : all)
    total += rank.wanted ? rank.wanted : ofDefault;
  return RankThreads{wanted.value_or(ofDefault), total > processorsAllowed()};
}

} // namespace mica::rt
