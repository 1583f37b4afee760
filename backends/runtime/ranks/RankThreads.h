// The number of threads of a rank.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
#define MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H

#include "backends/runtime/abi/Communicator.h"

namespace mica::rt {

/// defaultThreads, divided by the number of ranks that may use the same processors: those of this
/// host, unless mpirun has bound each to its own. At least 1. Called by all ranks.
Result<unsigned> defaultThreadsOfRank(Communicator &ranks);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_RANKTHREADS_H
