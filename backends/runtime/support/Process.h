// The setup of every tool and compiled program.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H

#include <string>

namespace mica::rt {

/// Call it first in main. Opens closed descriptors 0 to 2, so that a file opened later does not
/// become a standard stream; using them still fails with EBADF. Ignores SIGXFSZ, so that exceeding
/// the file size limit (ulimit -f) is a write error. Running out of memory ends the process with an
/// error line and removes temporary files.
void prepareProcess();

/// From now on, running out of memory throws std::bad_alloc: for a server, which ends only the
/// requests concerned.
void throwOutOfMemory();

/// Reports that memory is exhausted and exits. Does not allocate.
[[noreturn]] void exitOutOfMemory();
/// From now on, exitOutOfMemory reports it of this process, one of several.
void nameForOutOfMemory(const std::string &process);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H
