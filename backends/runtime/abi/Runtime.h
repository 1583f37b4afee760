// The environment that a model's code runs in.
#ifndef MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H
#define MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H

#include "backends/runtime/abi/Communicator.h"
#include "backends/runtime/abi/Observers.h"
#include "backends/runtime/abi/RuntimeTable.h"
#include "backends/runtime/abi/WorkPool.h"

#include <functional>

namespace mica::rt {

/// The threads and functions that the code of a model uses. Each model has its own runtime, created
/// by a Device; models in a process share nothing.
class Runtime {
public:
  Runtime() = default;
  virtual ~Runtime() = default;
  Runtime(const Runtime &) = delete;
  Runtime &operator=(const Runtime &) = delete;

  virtual const RuntimeTable &table() const = 0;
  virtual WorkPool &pool() = 0;

  /// Records the calls of the code; null: no recording. Must not be changed while the code runs.
  CallObserver *profile() const { return activeProfile; }
  void setProfile(CallObserver *profile) { activeProfile = profile; }
  ProbeObserver *probes() const { return activeProbes; }
  void setProbes(ProbeObserver *probes) { activeProbes = probes; }

  /// Called before each kernel, on the thread that called the code, unless a profile is recorded:
  /// it may call the code for other rows, with other buffers, and must not throw. Null: nothing is
  /// called. Must not be changed while a kernel runs.
  const std::function<void()> *beforeKernels() const { return activeBeforeKernels; }
  void setBeforeKernels(const std::function<void()> *function) { activeBeforeKernels = function; }

  /// The other ranks; null: there are none. Must be set before the code runs.
  Communicator *communicator() const { return ranks; }
  void setCommunicator(Communicator *communicator) { ranks = communicator; }

private:
  Communicator *ranks = nullptr;
  CallObserver *activeProfile = nullptr;
  ProbeObserver *activeProbes = nullptr;
  const std::function<void()> *activeBeforeKernels = nullptr;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H
