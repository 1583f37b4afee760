//===- ExpertReader.h - mixtures of experts ---------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_EXPERTREADER_H
#define MICA_FRONTEND_CONFIG_EXPERTREADER_H

#include "frontend/config/KeyReader.h"

namespace mica {

/// The mixture of experts of the sparse layers; `dense` describes a feed-forward network with an
/// inner size, and with or without a bias. Errors name the keys of numbers that contradict each
/// other.
llvm::Expected<SparseConfig>
readExperts(const Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names,
            llvm::function_ref<DenseConfig(int64_t inner, bool bias)> dense);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_EXPERTREADER_H
