// The name of the machine.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H
#define MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H

#include <string>

namespace mica::rt {

/// Empty if it is unknown.
std::string hostName();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_HOSTNAME_H
