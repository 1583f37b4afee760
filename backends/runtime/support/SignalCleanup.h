// Removes temporary files when a signal ends the process.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H

#include <string>

namespace mica::rt {

/// From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU remove `path`, a file or an empty
/// folder, unless the process ignores them; then what was set up before for the signal happens: a
/// handler, or the end of the process. Returns a slot for `forgetTemporary`; -1 (no protection) if
/// the path is too long or too many are alive.
int protectTemporary(const std::string &path);
void forgetTemporary(int slot);

/// For code that ends the process without destructors, signal handlers included.
void removeTemporaries();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H
