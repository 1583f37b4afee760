#include "frontend/families/Families.h"
#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

/// The row of the first position in the position table.
static constexpr int64_t firstPosition = 2;

/// The padding id must be a row of both tables, of tokens and of positions; otherwise transformers
/// fails.
static llvm::Error checkPadding(const Hyperparameters &h, llvm::StringRef path) {
  auto check = [&](int64_t rows, llvm::StringRef table) -> llvm::Error {
    if (h.padding.value_or(0) < rows)
      return llvm::Error::success();
    return inputError(path,
                      "has \"pad_token_id\": " + llvm::Twine(*h.padding) +
                          ", which is not a row of the " + llvm::Twine(rows) + " of " + table,
                      "use one of them or null");
  };
  if (llvm::Error error = check(*h.vocab, "the vocabulary"))
    return error;
  return check(*h.maxPositions + firstPosition, "its positions");
}

// Sinusoidal positions, starting at 2; the row of the padding id is zero.
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
                 .sinusoidOffset = firstPosition,
                 .gated = false,
                 .activation = Activation::Gelu},
      .names = &names,
      .derive =
          [](Hyperparameters &h) {
            h.attentionBias = h.mlpBias = true;
            h.eps = 1e-5; // no config key
          },
      .check = checkPadding,
  };
  return &family;
}

} // namespace mica
