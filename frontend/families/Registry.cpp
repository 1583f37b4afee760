#include "frontend/families/Registry.h"

#include "frontend/families/Families.h"

namespace mica {

llvm::ArrayRef<FamilyEntry> familyEntries() {
#define MICA_ENTRY(modelType, name) {modelType, choose##name},
#define MICA_GGUF_ENTRY(modelType, name) {modelType, choose##name, &gguf##name},
  static constexpr FamilyEntry entries[] = {MICA_FAMILIES(MICA_ENTRY, MICA_GGUF_ENTRY)};
#undef MICA_GGUF_ENTRY
#undef MICA_ENTRY
  return entries;
}

} // namespace mica
