//===- Families.h - the families' files, for the registry only
//-----------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_FAMILIES_H
#define MICA_FRONTEND_FAMILIES_FAMILIES_H

#include "frontend/families/Family.h"

/// FAMILY(model_type, the name behind `choose`), sorted by model_type.
#define MICA_FAMILIES(FAMILY)                                                                      \
  FAMILY("bloom", Bloom)                                                                           \
  FAMILY("cohere", Cohere)                                                                         \
  FAMILY("deepseek", DeepSeek)                                                                     \
  FAMILY("deepseek_v2", DeepSeekV2)                                                                \
  FAMILY("deepseek_v3", DeepSeekV3)                                                                \
  FAMILY("gemma", Gemma)                                                                           \
  FAMILY("gemma2", Gemma2)                                                                         \
  FAMILY("gemma3_text", Gemma3Text)                                                                \
  FAMILY("glm4", Glm4)                                                                             \
  FAMILY("gpt2", Gpt2)                                                                             \
  FAMILY("gpt_neox", GptNeoX)                                                                      \
  FAMILY("gpt_oss", GptOss)                                                                        \
  FAMILY("granite", Granite)                                                                       \
  FAMILY("llama", Llama)                                                                           \
  FAMILY("minimind", MiniMind)                                                                     \
  FAMILY("mistral", Mistral)                                                                       \
  FAMILY("mixtral", Mixtral)                                                                       \
  FAMILY("olmo2", Olmo2)                                                                           \
  FAMILY("phi3", Phi3)                                                                             \
  FAMILY("qwen2", Qwen2)                                                                           \
  FAMILY("qwen2_moe", Qwen2Moe)                                                                    \
  FAMILY("qwen3", Qwen3)                                                                           \
  FAMILY("qwen3_moe", Qwen3Moe)                                                                    \
  FAMILY("stablelm", StableLm)                                                                     \
  FAMILY("starcoder2", Starcoder2)                                                                 \
  FAMILY("xglm", Xglm)

namespace mica {

#define MICA_DECLARE(modelType, name)                                                              \
  llvm::Expected<const Family *> choose##name(const FamilyEvidence &evidence);
MICA_FAMILIES(MICA_DECLARE)
#undef MICA_DECLARE

/// As GPT-2 and what follows it: biases everywhere, and unless the config says otherwise inner rows
/// four times as wide as the others.
inline void deriveLikeGpt2(Hyperparameters &h) {
  h.attentionBias = h.mlpBias = true;
  h.inner = h.inner.value_or(4 * *h.hidden);
}

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILIES_H
