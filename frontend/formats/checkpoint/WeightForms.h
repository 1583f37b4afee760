//===- WeightForms.h - the names of files with weights ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H
#define MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H

#include "llvm/ADT/StringRef.h"

namespace mica {

/// What the weights of a folder may be: one file, or an index of shards.
struct WeightForm {
  llvm::StringLiteral single, index;
};

/// The first form that is present in a folder is its weights.
inline constexpr WeightForm kWeightForms[] = {
    {"model.safetensors", "model.safetensors.index.json"},
    {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFORMS_H
