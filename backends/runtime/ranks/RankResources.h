// What a rank may use of its host, which it shares with other ranks.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_RANKRESOURCES_H
#define MICA_BACKENDS_RUNTIME_RANKS_RANKRESOURCES_H

#include "backends/runtime/abi/Communicator.h"
#include "backends/runtime/abi/Resources.h"

#include <optional>
#include <span>
#include <string>

namespace mica::rt {

struct RankResources : Resources {
  /// The processors that the ranks of this host may use together, and those that mpirun could have
  /// given them; more than the former if it has bound ranks to processors.
  size_t usable = 0, available = 0;
};

/// A rank's memory: its host, as a number, and the bytes that are available there.
struct RankMemory {
  uint64_t host, available;
};

/// The memory of each rank, if those of a host share it and all ranks need the same: the minimum
/// over the hosts.
uint64_t memoryOfEachRank(std::span<const RankMemory> ranks);

/// Called by all ranks, before they load the model. `wanted` threads, at least 1; without it,
/// defaultThreads, shared with the ranks of this host that may use some of the same processors:
/// those that mpirun has not bound to other ones. `root`: see availableMemory.
Result<RankResources> resourcesOfRank(Communicator &ranks, std::optional<unsigned> wanted,
                                      const std::string &root = "");

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_RANKRESOURCES_H
