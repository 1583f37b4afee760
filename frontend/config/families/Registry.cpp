#include "frontend/config/families/Families.h"

namespace mica {

llvm::ArrayRef<FamilyEntry> familyEntries() {
  static constexpr FamilyEntry entries[] = {
      {"llama", chooseLlama},
      {"minimind", chooseMiniMind},
      {"qwen3", chooseQwen3},
      {"qwen3_moe", chooseQwen3Moe},
  };
  return entries;
}

} // namespace mica
