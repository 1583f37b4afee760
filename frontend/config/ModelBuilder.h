//===- ModelBuilder.h - hyperparameters to a checked ModelConfig
//-----------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_MODELBUILDER_H
#define MICA_FRONTEND_CONFIG_MODELBUILDER_H

#include "frontend/families/Family.h"

namespace mica {

/// Puts `h` into general terms, with the constants of `family`. Refuses what contradicts itself
/// (heads that key/value heads do not divide, an odd head size, more chosen experts than there are,
/// ...).
llvm::Expected<ModelConfig> buildModelConfig(Hyperparameters h, const Family &family,
                                             llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_MODELBUILDER_H
