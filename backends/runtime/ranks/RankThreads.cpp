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

Result<unsigned> defaultThreadsOfRank(Communicator &ranks) {
  uint64_t own = processorsHash();
  std::vector<uint64_t> all(static_cast<size_t>(ranks.size()));
  if (Status done = ranks.allGather(&own, sizeof own, all.data()); !done)
    return done.error();
  auto sharing = static_cast<unsigned>(std::count(all.begin(), all.end(), own));
  return std::max(1u, defaultThreads() / sharing);
}

} // namespace mica::rt
