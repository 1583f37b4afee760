//===- GgufConfig.h - the metadata and tensors of GGUF files ----*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H

#include "frontend/families/ModelConfig.h"
#include "frontend/formats/gguf/GgufModel.h"

namespace mica {

/// Reads and checks the metadata by the tables of its architecture, which is its family's. Errors
/// name the file and the keys that it has. Refused are architectures without a family, keys that
/// are not known, and factors of rope that no known scaling has.
llvm::Expected<ModelConfig> readGgufConfig(const GgufModel &model);

/// The tensors of `model` under the names that `config` has for them, those of experts one by one.
/// What is in no table keeps its name, so that it has no place in the model.
std::vector<TensorInfo> nameGgufTensors(const GgufModel &model, const ModelConfig &config);

/// Where a GGUF file has what the family has as one tensor.
struct GgufPlace {
  std::string tensor;
  int64_t matrix = 0, matrices = 1; ///< of those of experts, which the file has in one tensor
};

/// Of every tensor that a model of `config` can have, by the family's name.
llvm::StringMap<GgufPlace> ggufPlaces(const ModelConfig &config);

/// `error`, which speaks of tensors by the names of `config`, by those of the file.
llvm::Error inGgufNames(llvm::Error error, const ModelConfig &config);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H
