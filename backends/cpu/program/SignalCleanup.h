// Removes temporary files when a signal ends the process.
#pragma once

#include <string>

namespace mica::program {

/// From now on SIGINT, SIGTERM and SIGHUP remove `path` before they end the process, unless the
/// process handles or ignores them itself. Returns a slot for `forgetTemporary`; -1 (no protection)
/// if the path is too long or too many are alive.
int protectTemporary(const std::string &path);
void forgetTemporary(int slot);

} // namespace mica::program
