#include "frontend/families/Families.h"

namespace mica {

llvm::ArrayRef<FamilyEntry> familyEntries() {
#define MICA_ENTRY(modelType, name) {modelType, choose##name},
  static constexpr FamilyEntry entries[] = {MICA_FAMILIES(MICA_ENTRY)};
#undef MICA_ENTRY
  return entries;
}

} // namespace mica
