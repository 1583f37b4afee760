#include "frontend/config/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Positions are sines and cosines, of which the first belongs to position 2; the row whose number
// is the id of padding is zero.
llvm::Expected<const Family *> chooseXglm(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"XGLMForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.finalNorm = "model.layer_norm";
    names.attentionNorm = "self_attn_layer_norm";
    names.out = "self_attn.out_proj";
    names.ffnNorm = "final_layer_norm";
    names.up = "fc1";
    names.down = "fc2";
  });
  static constexpr KeyRule own[] = {
      {"d_model", &H::hidden, ranges::width},
      {"num_layers", &H::layers, ranges::layers},
      {"attention_heads", &H::heads, ranges::heads},
      {"ffn_dim", &H::inner, ranges::width},
      {"max_position_embeddings", &H::maxPositions, ranges::positions, int64_t(2048)},
      {"vocab_size", &H::vocab, ranges::vocab},
      {"activation_function", &H::activation, {}, Unset()},
      {"scale_embedding", &H::scalesEmbedding, {}, true},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
      {"pad_token_id", &H::padding, ranges::token, int64_t(1), Null::Allowed},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "xglm",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .rope = false,
                 .sinusoidOffset = 2,
                 .gated = false,
                 .activation = Activation::Gelu},
      .names = &names,
      .derive =
          [](Hyperparameters &h) {
            h.attentionBias = h.mlpBias = true;
            h.eps = 1e-5; // which has no key
          },
  };
  return &family;
}

} // namespace mica
