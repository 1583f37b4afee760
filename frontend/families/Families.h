//===- Families.h - all families --------------------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_FAMILIES_H
#define MICA_FRONTEND_FAMILIES_FAMILIES_H

#include "frontend/families/CommonKeys.h"
#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"

/// FAMILY(model_type, NAME of the function chooseNAME), sorted by model_type; GGUF_FAMILY for
/// families with a row ggufNAME for GGUF files.
#define MICA_FAMILIES(FAMILY, GGUF_FAMILY)                                                         \
  GGUF_FAMILY("bamba", Bamba)                                                                      \
  GGUF_FAMILY("bloom", Bloom)                                                                      \
  GGUF_FAMILY("cohere", Cohere)                                                                    \
  GGUF_FAMILY("deepseek", DeepSeek)                                                                \
  GGUF_FAMILY("deepseek_v2", DeepSeekV2)                                                           \
  GGUF_FAMILY("deepseek_v3", DeepSeekV3)                                                           \
  GGUF_FAMILY("falcon_h1", FalconH1)                                                               \
  GGUF_FAMILY("gemma", Gemma)                                                                      \
  GGUF_FAMILY("gemma2", Gemma2)                                                                    \
  GGUF_FAMILY("gemma3_text", Gemma3Text)                                                           \
  FAMILY("gemma4", Gemma4)                                                                         \
  GGUF_FAMILY("gemma4_text", Gemma4Text)                                                           \
  GGUF_FAMILY("glm4", Glm4)                                                                        \
  GGUF_FAMILY("gpt2", Gpt2)                                                                        \
  GGUF_FAMILY("gpt_neox", GptNeoX)                                                                 \
  GGUF_FAMILY("gpt_oss", GptOss)                                                                   \
  GGUF_FAMILY("granite", Granite)                                                                  \
  GGUF_FAMILY("granitemoehybrid", GraniteMoeHybrid)                                                \
  GGUF_FAMILY("lfm2", Lfm2)                                                                        \
  GGUF_FAMILY("lfm2_moe", Lfm2Moe)                                                                 \
  GGUF_FAMILY("llama", Llama)                                                                      \
  GGUF_FAMILY("mamba2", Mamba2)                                                                    \
  FAMILY("minimind", MiniMind)                                                                     \
  FAMILY("mistral", Mistral)                                                                       \
  GGUF_FAMILY("mixtral", Mixtral)                                                                  \
  GGUF_FAMILY("nemotron_h", NemotronH)                                                             \
  GGUF_FAMILY("olmo2", Olmo2)                                                                      \
  GGUF_FAMILY("phi3", Phi3)                                                                        \
  GGUF_FAMILY("qwen2", Qwen2)                                                                      \
  GGUF_FAMILY("qwen2_moe", Qwen2Moe)                                                               \
  GGUF_FAMILY("qwen3", Qwen3)                                                                      \
  FAMILY("qwen3_5", Qwen35)                                                                        \
  FAMILY("qwen3_5_moe", Qwen35Moe)                                                                 \
  GGUF_FAMILY("qwen3_5_moe_text", Qwen35MoeText)                                                   \
  GGUF_FAMILY("qwen3_5_text", Qwen35Text)                                                          \
  GGUF_FAMILY("qwen3_moe", Qwen3Moe)                                                               \
  GGUF_FAMILY("qwen3_next", Qwen3Next)                                                             \
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

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILIES_H
