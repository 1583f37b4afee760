// Interfaces for observing a model's code while it runs.
#ifndef MICA_BACKENDS_RUNTIME_ABI_OBSERVERS_H
#define MICA_BACKENDS_RUNTIME_ABI_OBSERVERS_H

#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/abi/ProbeNumbers.h"
#include "backends/runtime/abi/WorkPool.h"
#include "backends/runtime/support/Result.h"

#include <functional>
#include <span>
#include <string_view>

namespace mica::rt {

/// Observes the calls of a model, and the launches in them.
class CallObserver {
public:
  virtual ~CallObserver() = default;
  /// Called by the session around a call of the model.
  virtual void beginCall(std::span<const int32_t> sequences,
                         std::span<const int32_t> positions) = 0;
  virtual void endCall(int64_t rows) = 0;
  /// Run and record; called by the runtime functions that generated code calls.
  virtual void launch(WorkPool::Body body, void *context, int64_t tasks) = 0;
  virtual Status product(const MatmulShape &shape, const std::function<Status()> &run) = 0;
  /// The same of what ranks do together, by name; `run` returns the number of bytes that this rank
  /// has received, or sent by a broadcast.
  virtual void exchange(std::string_view name, const std::function<uint64_t()> &run) = 0;
};

/// The rows that a probe records, with a stride of `stride` elements.
struct ProbeRows {
  const void *x;
  int64_t rows, columns, stride;
  ProbeNumbers numbers;
};

/// Receives the values that probes record, in the order of computation.
class ProbeObserver {
public:
  virtual ~ProbeObserver() = default;
  virtual void add(std::string_view name, int64_t layer, const ProbeRows &seen) = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_OBSERVERS_H
