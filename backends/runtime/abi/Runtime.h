// The environment that a model's code runs in.
#ifndef MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H
#define MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H

#include "backends/runtime/abi/RuntimeTable.h"
#include "backends/runtime/abi/WorkPool.h"

namespace mica::rt {

class Profile;
class ProbeListener;

/// Threads, and the functions that the code of a model calls. Each model has one, made by
/// a Device; models of a process share nothing.
class Runtime {
public:
  Runtime() = default;
  virtual ~Runtime() = default;
  Runtime(const Runtime &) = delete;
  Runtime &operator=(const Runtime &) = delete;

  virtual const RuntimeTable &table() const = 0;
  virtual WorkPool &pool() = 0;

  /// Records the calls of the code; null: none are recorded. Not while the code runs.
  Profile *profile() const { return activeProfile; }
  void setProfile(Profile *profile) { activeProfile = profile; }
  ProbeListener *probes() const { return activeProbes; }
  void setProbes(ProbeListener *probes) { activeProbes = probes; }

private:
  Profile *activeProfile = nullptr;
  ProbeListener *activeProbes = nullptr;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_RUNTIME_H
