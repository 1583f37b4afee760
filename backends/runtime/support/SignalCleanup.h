// Removes temporary files when a signal ends the process.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H

#include <string>

namespace mica::rt {

/// Registers `path`, a file or an empty folder, to be removed on SIGINT, SIGTERM, SIGHUP, SIGQUIT
/// and SIGXCPU, unless the process ignores the signal. The previous action for the signal, a
/// handler or the end of the process, follows. Returns a slot for `forgetTemporary`, or -1 (not
/// registered) if the path is too long or too many are registered.
int protectTemporary(const std::string &path);
void forgetTemporary(int slot);

/// For code that ends the process without running destructors, including signal handlers.
void removeTemporaries();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SIGNALCLEANUP_H
