// The caches of a manifest that is not whole yet.
#ifndef MICA_BACKENDS_RUNTIME_ABI_PARSECACHES_H
#define MICA_BACKENDS_RUNTIME_ABI_PARSECACHES_H

#include "backends/runtime/abi/Manifest.h"

#include <nlohmann/json_fwd.hpp>

namespace mica::rt {

/// A manifest with what decides how much memory caches take, and nothing else. Errors: as
/// parseManifest.
Result<Manifest> parseCaches(const nlohmann::json &json);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_PARSECACHES_H
