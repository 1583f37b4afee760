// The stack size of kernels, a contract between compiler and program.
#ifndef MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
#define MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H

#include <cstdint>

namespace mica::rt {

/// Bytes of stack that a kernel may use; row tiles and their sums take 0.9 MiB. The compiler
/// rejects kernels that need more; programs ensure this size at startup.
inline constexpr uint64_t kernelStackBytes = 2 << 20;

/// The stack of threads that run kernels: twice that of a kernel.
inline constexpr uint64_t threadStackBytes = 2 * kernelStackBytes;

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_KERNELSTACK_H
