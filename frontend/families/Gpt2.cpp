#include "frontend/families/Gpt2.h"

#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  names.embedding = "transformer.wte";
  names.positions = "transformer.wpe";
  names.layers = "transformer.h";
  names.finalNorm = "transformer.ln_f";
  names.attentionNorm = "ln_1";
  names.ffnNorm = "ln_2";
  names.qkv = "attn.c_attn";
  names.query = "attn.q_attn";
  names.key = "attn.k_attn";
  names.value = "attn.v_attn";
  names.out = "attn.c_proj";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.transposed = true;
});

// Learned positions, transposed matrices, biases everywhere.
llvm::Expected<const Family *> chooseGpt2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GPT2LMHeadModel"};
  static constexpr KeyRule own[] = {
      {"n_embd", &H::hidden, ranges::width},
      {"n_layer", &H::layers, ranges::layers},
      {"n_head", &H::heads, ranges::heads},
      optionalKey("n_inner", &H::inner, ranges::width),
      {"n_positions", &H::maxPositions, ranges::positions},
      {"vocab_size", &H::vocab, ranges::vocab},
      {"layer_norm_epsilon", &H::eps, ranges::eps, 1e-5},
      {"activation_function", &H::activation, {}, Unset()},
      {"scale_attn_weights", &H::scalesScores, {}, true},
      {"scale_attn_by_inverse_layer_idx", &H::scalesByLayer, {}, false},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"n_ctx", "duplicates the number of positions"},
      {"reorder_and_upcast_attn", reasons::implementation},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "gpt2",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .rope = false,
                 .learnedPositions = true,
                 .gated = false,
                 .activation = Activation::GeluTanh},
      .names = &names,
      .derive =
          [](Hyperparameters &h) {
            deriveLikeGpt2(h);
            if (!h.scalesScores.value_or(true))
              h.scoreScale = 1;
          },
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {{"feed_forward_length", &H::inner, ranges::width, Unset()}};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys,
                                                       gguf::layerNormKeys};

constexpr GgufArchitecture ggufGpt2 = {.name = "gpt2", .keys = ggufKeys, .names = joinedGgufNames};

} // namespace mica
