// The setup of every tool and compiled program.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H

namespace mica::rt {

/// First thing in main. Descriptors 0 to 2 that are closed are taken, so that no file that is
/// opened later is read or written as a standard stream; using them still fails with EBADF. SIGXFSZ
/// is ignored: a file that meets its limit (ulimit -f) is an error of the one that writes it. A
/// lack of memory ends the process with an error line and without temporary files.
void prepareProcess();

/// Reports that memory is exhausted and exits. Does not allocate.
[[noreturn]] void exitOutOfMemory();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_PROCESS_H
