//===- GgufConfig.h - the metadata and tensors of GGUF files ----*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H

#include "frontend/families/ModelConfig.h"
#include "frontend/formats/gguf/GgufModel.h"

namespace mica {

/// Reads and checks the metadata by the tables of the file's architecture and its family. Errors
/// name the file and its keys: an architecture without a family, unknown keys, and rope factors
/// that no known scaling produces.
llvm::Expected<ModelConfig> readGgufConfig(const GgufModel &model);

/// The tensors of `model` under the names in `config`, those of experts separately. Tensors that
/// are in no table keep their names, so that they are reported as unexpected.
std::vector<TensorInfo> nameGgufTensors(const GgufModel &model, const ModelConfig &config);

/// Where a GGUF file stores a tensor of the family.
struct GgufPlace {
  std::string tensor;
  int64_t matrix = 0, matrices = 1; ///< of expert tensors, which the file stores as one tensor
};

/// All tensors that a model of `config` can have, by the family's name.
llvm::StringMap<GgufPlace> ggufPlaces(const ModelConfig &config);

/// `error` with the tensor names of `config` replaced by those of the file.
llvm::Error inGgufNames(llvm::Error error, const ModelConfig &config);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H
