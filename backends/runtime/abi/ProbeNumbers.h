// Types of the values that generated code passes to probes.
#ifndef MICA_BACKENDS_RUNTIME_ABI_PROBENUMBERS_H
#define MICA_BACKENDS_RUNTIME_ABI_PROBENUMBERS_H

#include <cstdint>

namespace mica::rt {

/// The type of a probe's values in memory; a probe file stores f32, also for expert ids. The
/// numbers are part of the model object's interface (RuntimeCalls.def).
enum class ProbeNumbers : int32_t { F32 = 0, BF16 = 1, I32 = 2 };

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_PROBENUMBERS_H
