#include "backends/runtime/ranks/RankResources.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unistd.h>
#include <vector>

namespace mica::rt {

namespace {
/// What the others know of a rank.
struct Rank {
  RankMemory memory;
  uint64_t cores;  ///< defaultThreads
  uint64_t wanted; ///< threads; 0: the default
  uint64_t words;  ///< of its mask of processors
};

/// A set of processors: bit i of the words is processor i.
using Mask = std::vector<uint64_t>;

/// A rank of this host.
struct Sharer {
  uint64_t cores, wanted;
  Mask mask;
};
} // namespace

static Mask maskOf(const std::vector<size_t> &processors) {
  Mask mask;
  for (size_t processor : processors) {
    mask.resize(std::max(mask.size(), processor / 64 + 1));
    mask[processor / 64] |= uint64_t(1) << processor % 64;
  }
  return mask;
}

static size_t countOf(const Mask &mask) {
  return std::accumulate(mask.begin(), mask.end(), size_t(0), [](size_t sum, uint64_t word) {
    return sum + static_cast<size_t>(std::popcount(word));
  });
}

static bool intersect(const Mask &a, const Mask &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), uint64_t(0), std::bit_or<>(),
                            std::bit_and<>()) != 0;
}

/// Adds the processors of `other`.
static void unite(Mask &mask, const Mask &other) {
  std::transform(mask.begin(), mask.end(), other.begin(), mask.begin(), std::bit_or<>());
}

/// The default number of threads of a rank: its cores, of which it has a part where other ranks may
/// use the same processor.
static uint64_t defaultOf(const Sharer &rank, const std::vector<Sharer> &all) {
  double share = 0;
  for (size_t processor = 0; processor < 64 * rank.mask.size(); ++processor) {
    auto may = [&](const Sharer &each) {
      return (each.mask[processor / 64] >> processor % 64 & 1) != 0;
    };
    if (may(rank))
      share += 1.0 / static_cast<double>(std::count_if(all.begin(), all.end(), may));
  }
  constexpr double rounding = 1e-6; // three thirds are one
  double part = share / static_cast<double>(std::max<size_t>(countOf(rank.mask), 1));
  return std::max<uint64_t>(
      1, static_cast<uint64_t>(part * static_cast<double>(rank.cores) + rounding));
}

/// Whether a rank and those with which it shares processors, directly or through others, have more
/// threads than these.
static bool areTooMany(const Sharer &own, const std::vector<Sharer> &all) {
  Mask together = own.mask;
  for (size_t before = 0; before != countOf(together);) {
    before = countOf(together);
    for (const Sharer &each : all)
      if (intersect(each.mask, together))
        unite(together, each.mask);
  }
  uint64_t threads = 0;
  for (const Sharer &each : all)
    if (intersect(each.mask, together))
      threads += each.wanted ? each.wanted : defaultOf(each, all);
  return threads > withinQuota(static_cast<unsigned>(countOf(together)), "");
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
  std::string name = hostName();
  Hasher host;
  host.update(std::as_bytes(std::span(name)));
  Mask own = maskOf(affinity());
  Rank self{
      {host.digest(), availableMemory(root)}, defaultThreads(), wanted.value_or(0), own.size()};
  auto size = static_cast<size_t>(ranks.size());
  std::vector<Rank> all(size);
  if (Status done = ranks.allGather(&self, sizeof self, all.data()); !done)
    return done.error();
  size_t words = 0;
  for (const Rank &rank : all)
    words = std::max<size_t>(words, rank.words);
  own.resize(words);
  Mask masks(words * size);
  if (Status done = ranks.allGather(own.data(), words * sizeof(uint64_t), masks.data()); !done)
    return done.error();

  std::vector<Sharer> sharers;
  std::vector<RankMemory> memory;
  Mask ofHost(words);
  for (size_t rank = 0; rank < size; ++rank) {
    memory.push_back(all[rank].memory);
    if (all[rank].memory.host != self.memory.host)
      continue;
    auto begin = masks.begin() + static_cast<ptrdiff_t>(rank * words);
    sharers.push_back(
        {all[rank].cores, all[rank].wanted, Mask(begin, begin + static_cast<ptrdiff_t>(words))});
    unite(ofHost, sharers.back().mask);
  }
  Sharer sharer{self.cores, self.wanted, own};
  RankResources resources{wanted.value_or(static_cast<unsigned>(defaultOf(sharer, sharers)))};
  resources.areOversubscribed = areTooMany(sharer, sharers);
  resources.ranksOnHost = sharers.size();
  resources.memory = memoryOfEachRank(memory);
  resources.usable = countOf(ofHost);
  // mpirun binds its children, not itself.
  resources.available = std::max(resources.usable, affinity(getppid()).size());
  return resources;
}

} // namespace mica::rt
