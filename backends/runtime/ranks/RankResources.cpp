#include "backends/runtime/ranks/RankResources.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <bitset>
#include <fstream>
#include <map>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace mica::rt {

namespace {
/// Bit i is processor i. Linux supports at most as many on x86.
using Processors = std::bitset<8192>;

/// What the others know of a rank.
struct Rank {
  RankMemory memory;
  uint64_t cores;  ///< defaultThreads
  uint64_t wanted; ///< threads; 0: the default
  Processors processors;
};
static_assert(std::is_trivially_copyable_v<Rank>, "is exchanged as bytes");
} // namespace

/// The default number of threads of a rank: its cores, of which it has a part where other ranks of
/// its host, `all`, may use the same processor.
static uint64_t defaultOf(const Rank &rank, const std::vector<Rank> &all) {
  double share = 0;
  for (size_t processor = 0; processor < rank.processors.size(); ++processor)
    if (rank.processors[processor])
      share +=
          1.0 / static_cast<double>(std::count_if(all.begin(), all.end(), [&](const Rank &each) {
            return each.processors[processor];
          }));
  constexpr double rounding = 1e-6; // three thirds are one
  double part = share / static_cast<double>(std::max<size_t>(rank.processors.count(), 1));
  return std::max<uint64_t>(
      1, static_cast<uint64_t>(part * static_cast<double>(rank.cores) + rounding));
}

/// Whether a rank and those with which it shares processors, directly or through others, have more
/// threads than these.
static bool areTooMany(const Rank &own, const std::vector<Rank> &all) {
  Processors together = own.processors;
  auto shares = [&](const Rank &each) { return (each.processors & together).any(); };
  for (size_t before = 0; before != together.count();) {
    before = together.count();
    for (const Rank &each : all)
      if (shares(each))
        together |= each.processors;
  }
  uint64_t threads = 0;
  for (const Rank &each : all)
    if (shares(each))
      threads += each.wanted ? each.wanted : defaultOf(each, all);
  return threads > withinQuota(static_cast<unsigned>(together.count()), "");
}

uint64_t memoryOfEachRank(std::span<const RankMemory> ranks) {
  struct Host {
    uint64_t available = UINT64_MAX, ranks = 0;
  };
  std::map<uint64_t, Host> hosts;
  for (const RankMemory &rank : ranks) {
    Host &host = hosts[rank.host];
    host.available = std::min(host.available, rank.available);
    ++host.ranks;
  }
  uint64_t min = UINT64_MAX;
  for (const auto &[number, host] : hosts)
    min = std::min(min, host.available / host.ranks);
  return min;
}

Result<RankResources> resourcesOfRank(Communicator &ranks, std::optional<unsigned> wanted,
                                      const std::string &root) {
  // Copies of a virtual machine may have the same name, and containers of a host have its boot id.
  std::string name = hostName(), boot;
  std::getline(std::ifstream(root + "/proc/sys/kernel/random/boot_id"), boot);
  Hasher host;
  for (const std::string &part : {name, boot})
    host.update(std::as_bytes(std::span(part)));
  Rank own{{host.digest(), availableMemory(root)}, defaultThreads(), wanted.value_or(0), {}};
  for (size_t processor : affinity())
    own.processors.set(processor);
  std::vector<Rank> all(static_cast<size_t>(ranks.size()));
  if (Status done = ranks.allGather(&own, sizeof own, all.data()); !done)
    return done.error();

  std::vector<RankMemory> memory(all.size());
  std::transform(all.begin(), all.end(), memory.begin(),
                 [](const Rank &rank) { return rank.memory; });
  std::erase_if(all, [&](const Rank &rank) { return rank.memory.host != own.memory.host; });
  Processors ofHost;
  for (const Rank &rank : all)
    ofHost |= rank.processors;
  RankResources resources{wanted.value_or(static_cast<unsigned>(defaultOf(own, all)))};
  resources.areOversubscribed = areTooMany(own, all);
  resources.ranksOnHost = all.size();
  resources.memory = memoryOfEachRank(memory);
  resources.usable = ofHost.count();
  // mpirun binds its children, not itself.
  resources.available = std::max(resources.usable, affinity(getppid()).size());
  return resources;
}

} // namespace mica::rt
