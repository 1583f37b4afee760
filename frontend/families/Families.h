//===- Families.h - the families' files, for the registry only --*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_FAMILIES_H
#define MICA_FRONTEND_FAMILIES_FAMILIES_H

#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"

#include <algorithm>

/// FAMILY(model_type, the name after `choose`), sorted by model_type; GGUF_FAMILY of those whose
/// file has a row for GGUF files as well, of the same name after `gguf`.
#define MICA_FAMILIES(FAMILY, GGUF_FAMILY)                                                         \
  GGUF_FAMILY("bloom", Bloom)                                                                      \
  GGUF_FAMILY("cohere", Cohere)                                                                    \
  GGUF_FAMILY("deepseek", DeepSeek)                                                                \
  GGUF_FAMILY("deepseek_v2", DeepSeekV2)                                                           \
  GGUF_FAMILY("deepseek_v3", DeepSeekV3)                                                           \
  GGUF_FAMILY("gemma", Gemma)                                                                      \
  GGUF_FAMILY("gemma2", Gemma2)                                                                    \
  GGUF_FAMILY("gemma3_text", Gemma3Text)                                                           \
  GGUF_FAMILY("glm4", Glm4)                                                                        \
  GGUF_FAMILY("gpt2", Gpt2)                                                                        \
  GGUF_FAMILY("gpt_neox", GptNeoX)                                                                 \
  GGUF_FAMILY("gpt_oss", GptOss)                                                                   \
  GGUF_FAMILY("granite", Granite)                                                                  \
  GGUF_FAMILY("lfm2", Lfm2)                                                                        \
  GGUF_FAMILY("lfm2_moe", Lfm2Moe)                                                                 \
  GGUF_FAMILY("llama", Llama)                                                                      \
  FAMILY("minimind", MiniMind)                                                                     \
  FAMILY("mistral", Mistral)                                                                       \
  GGUF_FAMILY("mixtral", Mixtral)                                                                  \
  GGUF_FAMILY("olmo2", Olmo2)                                                                      \
  GGUF_FAMILY("phi3", Phi3)                                                                        \
  GGUF_FAMILY("qwen2", Qwen2)                                                                      \
  GGUF_FAMILY("qwen2_moe", Qwen2Moe)                                                               \
  GGUF_FAMILY("qwen3", Qwen3)                                                                      \
  GGUF_FAMILY("qwen3_moe", Qwen3Moe)                                                               \
  GGUF_FAMILY("stablelm", StableLm)                                                                \
  GGUF_FAMILY("starcoder2", Starcoder2)                                                            \
  FAMILY("xglm", Xglm)

namespace mica {

#define MICA_DECLARE(modelType, name)                                                              \
  llvm::Expected<const Family *> choose##name(const FamilyEvidence &evidence);
#define MICA_DECLARE_GGUF(modelType, name)                                                         \
  MICA_DECLARE(modelType, name)                                                                    \
  extern const GgufArchitecture gguf##name;
MICA_FAMILIES(MICA_DECLARE, MICA_DECLARE_GGUF)
#undef MICA_DECLARE_GGUF
#undef MICA_DECLARE

/// As GPT-2 and what follows it: biases everywhere, and unless the config says otherwise inner rows
/// four times as wide as the others.
inline void deriveLikeGpt2(Hyperparameters &h) {
  h.attentionBias = h.mlpBias = true;
  h.inner = h.inner.value_or(4 * *h.hidden);
}

/// Sizes of Qwen's experts that GGUF files may lack, as llama.cpp has them.
inline llvm::Error deriveGgufExperts(const GgufKeys &, Hyperparameters &h) {
  h.expertInner = h.expertInner.value_or(std::max<int64_t>(1, *h.inner / *h.expertsPerToken));
  return llvm::Error::success();
}

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILIES_H
