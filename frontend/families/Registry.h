//===- Registry.h - all model families --------------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_REGISTRY_H
#define MICA_FRONTEND_FAMILIES_REGISTRY_H

#include "frontend/families/Family.h"

namespace mica {

/// A row of the registry: a model_type and the choice among its families.
struct FamilyEntry {
  llvm::StringLiteral modelType;
  llvm::Expected<const Family *> (*choose)(const FamilyEvidence &evidence);
  const GgufArchitecture *gguf = nullptr; ///< for GGUF files; null if there are none
};

/// All supported families, sorted by model_type.
llvm::ArrayRef<FamilyEntry> familyEntries();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_REGISTRY_H
