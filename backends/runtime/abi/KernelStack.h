// How much of the stack compiler and program grant to a kernel.
#ifndef MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
#define MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H

#include <cstdint>

namespace mica::rt {

/// In bytes: tiles of rows and their sums take 0.9
/// MiB. The compiler rejects more; a program ensures it at startup.
inline constexpr uint64_t kernelStackBytes = 2 << 20;

/// The stack of threads that run kernels: twice that of a kernel.
inline constexpr uint64_t threadStackBytes = 2 * kernelStackBytes;

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
