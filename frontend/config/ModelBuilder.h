//===- ModelBuilder.h - hyperparameters to ModelConfig ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_MODELBUILDER_H
#define MICA_FRONTEND_CONFIG_MODELBUILDER_H

#include "frontend/config/KeyReader.h"
#include "frontend/families/Family.h"

namespace mica {

/// Converts `h` to a ModelConfig, with the constants of `family`. Rejects contradictions (heads
/// that are not a multiple of the key/value heads, an odd head size, ...); errors name the keys in
/// `names`.
llvm::Expected<ModelConfig> buildModelConfig(Hyperparameters h, const Family &family,
                                             const KeyNames &names);

/// Sorts the end tokens and the ignored keys of a model; `path` is the file of its generation
/// settings. Rejects tokens that are not in the vocabulary.
llvm::Error finishModelConfig(ModelConfig &model, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_MODELBUILDER_H
