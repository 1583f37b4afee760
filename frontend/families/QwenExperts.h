//===- QwenExperts.h - experts in Qwen's families ---------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_QWENEXPERTS_H
#define MICA_FRONTEND_FAMILIES_QWENEXPERTS_H

#include "frontend/families/GgufKeys.h"

#include <algorithm>

namespace mica {

/// The names of Qwen's shared expert and its gate.
constexpr void nameSharedExpert(NamingTable &names) {
  names.sharedExpert = "mlp.shared_expert";
  names.sharedExpertGate = "mlp.shared_expert_gate";
}

/// Sizes of shared experts in GGUF files.
inline constexpr KeyRule ggufSharedExpertKeys[] = {
    {"expert_shared_feed_forward_length", &Hyperparameters::sharedInner, ranges::width, Unset()},
    {"feed_forward_length", &Hyperparameters::inner, ranges::width, Unset()},
};

/// Sizes of Qwen's experts that GGUF files may omit, with llama.cpp's defaults.
inline llvm::Error deriveGgufExperts(const GgufKeys &, Hyperparameters &h) {
  h.expertInner = h.expertInner.value_or(std::max<int64_t>(1, *h.inner / *h.expertsPerToken));
  return llvm::Error::success();
}

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_QWENEXPERTS_H
