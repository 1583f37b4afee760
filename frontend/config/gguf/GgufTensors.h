//===- GgufTensors.h - the names of tensors in GGUF files -------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFTENSORS_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFTENSORS_H

#include "frontend/families/ModelConfig.h"
#include "frontend/formats/gguf/GgufModel.h"

#include "llvm/ADT/StringMap.h"

namespace mica {

/// The tensors of `model` under the names in `config`, those of experts separately. Tensors that
/// are in no table keep their names, so that they are reported as unexpected.
std::vector<TensorInfo> nameGgufTensors(const GgufModel &model, const ModelConfig &config);

/// Where a GGUF file stores a tensor of the family.
struct GgufTensorRef {
  std::string tensor;
  int64_t matrix = 0, matrices = 1; ///< of expert tensors, which the file stores as one tensor
};

/// All tensors that a model of `config` can have, by the family's name.
llvm::StringMap<GgufTensorRef> ggufTensorRefs(const ModelConfig &config);

/// `error` with the tensor names of `config` replaced by those of the file. An expert's matrix is
/// an entry of a tensor: "blk.0.ffn_up_exps.weight[3]".
llvm::Error inGgufNames(llvm::Error error, const ModelConfig &config);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFTENSORS_H
