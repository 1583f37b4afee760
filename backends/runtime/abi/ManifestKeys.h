// The keys of manifests, for the compiler, which writes them, and programs, which read them.
#ifndef MICA_BACKENDS_RUNTIME_ABI_MANIFESTKEYS_H
#define MICA_BACKENDS_RUNTIME_ABI_MANIFESTKEYS_H

namespace mica::rt {

struct ManifestKey {
  const char *object; ///< The key of the object, or of the list of objects, that has it; "": the
                      ///< manifest itself.
  const char *text;
  bool isRead; ///< Whether programs read it.
};

namespace manifest_keys {
#define MICA_MANIFEST_KEY(constant, object, key, isRead)                                           \
  inline constexpr ManifestKey constant{object, key, isRead};
#include "backends/runtime/abi/ManifestKeys.def"
} // namespace manifest_keys

inline constexpr ManifestKey kManifestKeys[] = {
#define MICA_MANIFEST_KEY(constant, object, key, isRead) manifest_keys::constant,
#include "backends/runtime/abi/ManifestKeys.def"
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_MANIFESTKEYS_H
