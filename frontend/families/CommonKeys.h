//===- CommonKeys.h - keys that families share ------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_COMMONKEYS_H
#define MICA_FRONTEND_FAMILIES_COMMONKEYS_H

#include "frontend/families/Family.h"

namespace mica {

/// The keys that most families share: sizes, norm, rope.
llvm::ArrayRef<KeyRule> commonKeys();

/// The keys of every family, after its own: types, end tokens.
llvm::ArrayRef<KeyRule> everyKeys();

/// Keys with the same meaning for all decoders, of which only one value is implemented.
llvm::ArrayRef<FixedKey> commonFixedKeys();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_COMMONKEYS_H
