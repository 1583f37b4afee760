//===- TensorMatch.h - match stored with needed tensors ---------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_TENSORMATCH_H
#define MICA_FRONTEND_IMPORT_TENSORMATCH_H

#include "frontend/formats/checkpoint/WeightFiles.h"
#include "frontend/import/WeightPlan.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// A tensor that has no effect, and the reason.
struct IgnoredTensor {
  std::string name, reason;
};

/// Finds the tensor `name`, which must have `shape` and a type that Mica computes with. Errors name
/// the tensor.
llvm::Expected<const TensorInfo *> findTensor(const WeightFiles &weights, llvm::StringRef name,
                                              llvm::ArrayRef<int64_t> shape);

/// Finds the tensor whose part `source` has `shape`. If the part is an entry, the tensor must have
/// `entries` entries; nullopt: any number.
llvm::Expected<const TensorInfo *> findSource(const WeightFiles &weights, const TensorPart &source,
                                              llvm::ArrayRef<int64_t> shape,
                                              std::optional<int64_t> entries = std::nullopt);

/// Checks `weights` against `plan`, and sets the plan's types and, if tensors have other names in
/// the files, its sources. Every tensor of the plan must exist with its shape and type f64, f32,
/// bf16 or f16, the same for all stacked tensors. Other tensors are errors, except those known to
/// be irrelevant, and an lm_head that is stored although it is tied, which must equal the embedding
/// byte for byte. Returns the exceptions, sorted by name.
llvm::Expected<std::vector<IgnoredTensor>> matchTensors(const WeightFiles &weights,
                                                        const ModelConfig &model, WeightPlan &plan);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_TENSORMATCH_H
