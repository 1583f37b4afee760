// The interface of the runtime for the code of a model: a table of functions, the last argument of
// mica_forward. Also valid C, for hosts that call a model themselves.
#ifndef MICA_BACKENDS_RUNTIME_ABI_RUNTIMETABLE_H
#define MICA_BACKENDS_RUNTIME_ABI_RUNTIMETABLE_H

#include <stdint.h>

#ifdef __cplusplus
namespace mica::rt {
#endif

/// Slots are words of 8 bytes, so that a slot's index determines its address. Code of a model runs
/// with any table that is at least as large as the one that it was compiled for, whose size it
/// exports as `const int64_t mica_runtime_bytes`.
typedef struct RuntimeTable {
  int64_t size;  ///< of this table in bytes
  void *runtime; ///< the first argument of each call
#define MICA_RUNTIME_CALL(name, result, ...) result (*name)(void *runtime, __VA_ARGS__);
#include "backends/runtime/abi/RuntimeCalls.def"
#undef MICA_RUNTIME_CALL
} RuntimeTable;

#ifdef __cplusplus
} // namespace mica::rt
#endif

#endif // MICA_BACKENDS_RUNTIME_ABI_RUNTIMETABLE_H
