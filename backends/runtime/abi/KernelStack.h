// How much of the stack compiler and program grant to a kernel.
#ifndef MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
#define MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H

#include <cstdint>

namespace mica::rt {

/// In bytes: tiles of rows and their sums take 0.9 MiB. The compiler refuses more, a program makes
/// sure of it at its start.
inline constexpr uint64_t kernelStackBytes = 2 << 20;

/// What threads that run kernels have: a kernel's and as much again.
inline constexpr uint64_t threadStackBytes = 2 * kernelStackBytes;

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
