//===- IrrelevantKeys.h - keys that cannot change what a model computes
//--------------------------===//
#ifndef MICA_FRONTEND_CONFIG_IRRELEVANTKEYS_H
#define MICA_FRONTEND_CONFIG_IRRELEVANTKEYS_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mica {

/// Why the key of config.json has no influence on a model of that type; nothing where it may have
/// some.
std::optional<llvm::StringRef> whyIrrelevant(llvm::StringRef key, llvm::StringRef modelType);

/// Why the tensor has no influence, whatever its type and shape; nothing where it may have some.
std::optional<llvm::StringRef> whyIrrelevantTensor(llvm::StringRef name);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_IRRELEVANTKEYS_H
