// The threads of a rank.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
#define MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H

#include "backends/runtime/abi/Communicator.h"

#include <optional>

namespace mica::rt {

struct RankThreads {
  unsigned count;
  bool areOversubscribed; ///< with those of the ranks that may use the same processors, more than
                          ///< these
  /// The processors that the ranks of this host may use together, and those that mpirun could have
  /// given them; more than the former if it has bound ranks to processors.
  size_t usable, available;
};

/// `wanted` threads, at least 1; without it, defaultThreads divided by the number of ranks that may
/// use the same processors: those of this host, unless mpirun has bound each to its own. Called by
/// all ranks.
Result<RankThreads> threadsOfRank(Communicator &ranks, std::optional<unsigned> wanted);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
