// The threads of a rank.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
#define MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H

#include "backends/runtime/abi/Communicator.h"

#include <optional>

namespace mica::rt {

struct RankThreads {
  unsigned count;
  bool areCrowded; ///< with those of the ranks that may use the same processors, more than these
};

/// `wanted` threads, at least 1; without it, defaultThreads divided by the number of ranks that may
/// use the same processors: those of this host, unless mpirun has bound each to its own. Called by
/// all ranks.
Result<RankThreads> threadsOfRank(Communicator &ranks, std::optional<unsigned> wanted);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
