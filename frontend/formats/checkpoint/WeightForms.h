//===- WeightForms.h - names of weight files --------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H
#define MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H

#include "llvm/ADT/StringRef.h"

namespace mica {

/// A form of the weights in a folder: one file, or an index of shards.
struct WeightForm {
  llvm::StringLiteral single, index;
};

/// All forms; the first one that is present in a folder is used.
inline constexpr WeightForm kWeightForms[] = {
    {"model.safetensors", "model.safetensors.index.json"},
    {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H
