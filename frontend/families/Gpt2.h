//===- Gpt2.h - what families have from GPT-2 -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_GPT2_H
#define MICA_FRONTEND_FAMILIES_GPT2_H

#include "frontend/families/Family.h"

namespace mica {

/// As in GPT-2 and its successors: biases everywhere and, unless the config has a value, an inner
/// size of four times the hidden size.
inline void deriveLikeGpt2(Hyperparameters &h) {
  h.attentionBias = h.mlpBias = true;
  h.inner = h.inner.value_or(4 * *h.hidden);
}

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GPT2_H
