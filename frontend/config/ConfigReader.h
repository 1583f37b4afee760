//===- ConfigReader.h - config.json and generation_config.json --*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_CONFIGREADER_H
#define MICA_FRONTEND_CONFIG_CONFIGREADER_H

#include "frontend/families/ModelConfig.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

class WeightFiles;

/// Reads and checks the config of a model folder. `weights` distinguishes families with the same
/// model_type; null in a dry run without weights. Errors are one line and name the file, the key
/// and the value.
llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef folder, const WeightFiles *weights);

/// The same for a parsed config.json; `path` names it in errors. `hasTensor` may be null.
llvm::Expected<ModelConfig> modelConfigFrom(const llvm::json::Object &config, llvm::StringRef path,
                                            llvm::function_ref<bool(llvm::StringRef)> hasTensor);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_CONFIGREADER_H
