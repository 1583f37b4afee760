// The name of the machine, and of ranks in messages.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H
#define MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H

#include <cstdint>
#include <string>

namespace mica::rt {

/// Empty if it is unknown.
std::string hostName();

/// A rank in messages.
std::string rankOnHost(int64_t rank, const std::string &host);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H
