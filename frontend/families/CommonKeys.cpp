#include "frontend/families/CommonKeys.h"

namespace mica {

using H = Hyperparameters;

llvm::ArrayRef<KeyRule> commonKeys() {
  static constexpr KeyRule keys[] = {
      {"hidden_size", &H::hidden, ranges::width},
      {"num_hidden_layers", &H::layers, ranges::layers},
      {"num_attention_heads", &H::heads, ranges::heads},
      optionalKey("num_key_value_heads", &H::kvHeads, ranges::heads),
      optionalKey("head_dim", &H::headDim, ranges::headDim),
      {"vocab_size", &H::vocab, ranges::vocab},
      {"intermediate_size", &H::inner, ranges::width},
      {"max_position_embeddings", &H::maxPositions, ranges::positions},
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-6},
      {"tie_word_embeddings", &H::tiedHead, {}, false},
      // Null is not a valid value: only an absent key means the default.
      {"rope_theta", &H::theta, ranges::theta, Unset()},
      optionalKey("rope_scaling", &H::ropeScaling),
      optionalKey("rope_parameters", &H::ropeParameters),
      {"hidden_act", &H::activation, {}, Unset()},
      optionalKey("layer_types", &H::layerTypes),
  };
  return keys;
}

llvm::ArrayRef<KeyRule> everyKeys() {
  static constexpr KeyRule keys[] = {
      optionalKey("dtype", &H::type),
      optionalKey("torch_dtype", &H::type),
      optionalKey("bos_token_id", &H::bos, ranges::token),
      optionalKey("eos_token_id", &H::eos, ranges::token),
  };
  return keys;
}

llvm::ArrayRef<FixedKey> commonFixedKeys() {
  static constexpr FixedKey keys[] = {
      {"add_cross_attention", "[false]"}, {"compression_config", "[null]"},
      {"is_encoder_decoder", "[false]"},  {"pruned_heads", "[{}, null]"},
      {"quantization", "[null]"},         {"quantization_config", "[null]"},
  };
  return keys;
}

} // namespace mica
