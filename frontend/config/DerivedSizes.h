//===- DerivedSizes.h - sizes that follow from others -----------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_DERIVEDSIZES_H
#define MICA_FRONTEND_CONFIG_DERIVEDSIZES_H

#include "frontend/config/KeyReader.h"

namespace mica {

/// Derives the sizes of heads that a file omits from others. Rejects sizes that contradict each
/// other: heads that are not a multiple of the key/value heads, an odd head size, ...
llvm::Error deriveSizes(Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_DERIVEDSIZES_H
