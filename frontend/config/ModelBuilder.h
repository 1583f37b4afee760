//===- ModelBuilder.h - hyperparameters to a checked ModelConfig -*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_MODELBUILDER_H
#define MICA_FRONTEND_CONFIG_MODELBUILDER_H

#include "frontend/config/KeyReader.h"
#include "frontend/families/Family.h"

namespace mica {

/// Puts `h` into general terms, with the constants of `family`. Refuses what contradicts itself
/// (heads that are not a multiple of the key/value heads, an odd head size, more chosen experts
/// than there are,
/// ...), with the keys that `names` has for it.
llvm::Expected<ModelConfig> buildModelConfig(Hyperparameters h, const Family &family,
                                             const KeyNames &names);

/// Sorts the end tokens and the ignored keys of a model whose generation is as `path` says. Refuses
/// tokens that the vocabulary does not have.
llvm::Error finishModelConfig(ModelConfig &model, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_MODELBUILDER_H
