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

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFCONFIG_H
