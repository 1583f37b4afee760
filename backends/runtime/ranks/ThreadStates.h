// What the threads of this process do.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_THREADSTATES_H
#define MICA_BACKENDS_RUNTIME_RANKS_THREADSTATES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace mica::rt {

/// Whether a thread makes progress, or will as soon as it gets a processor, memory or data of a
/// file: not if it waits for an event or has been stopped. `stat` and `syscall` are its files of
/// these names in /proc. Yes if they cannot be interpreted.
bool isThreadBusy(std::string_view stat, std::string_view syscall);

/// Whether a thread of this process is busy, except `except` (a number of gettid).
bool isProcessBusy(int64_t except);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_THREADSTATES_H
