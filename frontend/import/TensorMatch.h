//===- TensorMatch.h - stored tensors against needed ones -------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_TENSORMATCH_H
#define MICA_FRONTEND_IMPORT_TENSORMATCH_H

#include "frontend/formats/checkpoint/WeightFiles.h"
#include "frontend/import/WeightPlan.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// A tensor that was found and has no influence, and why.
struct IgnoredTensor {
  std::string name, reason;
};

/// Finds the tensor `name` of `shape` and of a type that Mica computes with. Errors name the
/// tensor.
llvm::Expected<const TensorInfo *> findTensor(const WeightFiles &weights, llvm::StringRef name,
                                              llvm::ArrayRef<int64_t> shape);

/// The tensor whose part `source` has `shape`. Where the part is one of its
/// entries, there are `entries` of them, or as many as it has.
llvm::Expected<const TensorInfo *> findSource(const WeightFiles &weights, const TensorPart &source,
                                              llvm::ArrayRef<int64_t> shape,
                                              std::optional<int64_t> entries = std::nullopt);

/// Checks `weights` against `plan` and sets the plan's types, and its sources where these have
/// other names in the files. Every tensor of the plan must be there with its shape and a type of
/// f64, f32, bf16 or f16, the same for all that are stacked. No other tensor may be there, except
/// those known to be irrelevant and a head that is stored beside the embedding although both are
/// one: that must equal it byte for byte. Returns the exceptions, sorted by name.
llvm::Expected<std::vector<IgnoredTensor>> matchTensors(const WeightFiles &weights,
                                                        const ModelConfig &model, WeightPlan &plan);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_TENSORMATCH_H
