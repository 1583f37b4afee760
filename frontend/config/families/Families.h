//===- Families.h - the families' files, for the registry only
//-----------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_FAMILIES_FAMILIES_H
#define MICA_FRONTEND_CONFIG_FAMILIES_FAMILIES_H

#include "frontend/config/Family.h"

namespace mica {

llvm::Expected<const Family *> chooseLlama(const FamilyEvidence &evidence);
llvm::Expected<const Family *> chooseMiniMind(const FamilyEvidence &evidence);
llvm::Expected<const Family *> chooseQwen3(const FamilyEvidence &evidence);
llvm::Expected<const Family *> chooseQwen3Moe(const FamilyEvidence &evidence);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_FAMILIES_FAMILIES_H
