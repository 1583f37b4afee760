#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

namespace mica {

using H = Hyperparameters;

// No attention and no MLP: a short convolution and a matrix per head, whose decay depends on the
// token.
llvm::Expected<const Family *> chooseMamba2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Mamba2ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, nameBackbone);
  static constexpr KeyRule own[] = {
      {"hidden_size", &H::hidden, ranges::width, int64_t(4096)},
      {"num_hidden_layers", &H::layers, ranges::layers, int64_t(64)},
      {"vocab_size", &H::vocab, ranges::vocab, int64_t(32768)},
      {"num_heads", &H::mambaHeads, ranges::heads, int64_t(128)},
      {"head_dim", &H::mambaHeadDim, ranges::headDim, int64_t(64)},
      {"n_groups", &H::mambaGroups, ranges::heads, int64_t(8)},
      {"state_size", &H::stateDim, ranges::headDim, int64_t(128)},
      {"expand", &H::mambaMultiple, ranges::multiplier, 2.0},
      {"conv_kernel", &H::convTaps, ranges::taps, int64_t(4)},
      {"use_conv_bias", &H::convBias, {}, true},
      {"use_bias", &H::mambaBias, {}, false},
      {"layer_norm_epsilon", &H::eps, ranges::eps, 1e-5},
      {"tie_word_embeddings", &H::tiedHead, {}, false},
  };
  static constexpr FixedKey fixed[] = {
      {"hidden_act", R"(["silu", "swish"])"},
      {"rms_norm", "[true]"},
      timeStepLimit,
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"chunk_size", "does not change results"},
      {"intermediate_size", "is overridden by expand"},
      {"norm_before_gate", "is not read: the gate always comes before the norm"},
      {"rescale_prenorm_residual", "only affects training"},
      {"residual_in_fp32", "residuals are always f32"},
      {"time_step_floor", "only affects training"},
      {"time_step_init_scheme", "only affects training"},
      {"time_step_max", "only affects training"},
      {"time_step_min", "only affects training"},
      {"time_step_rank", "is overridden by num_heads"},
      {"time_step_scale", "only affects training"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "mamba2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.rope = false, .otherMixer = Mixer::Mamba},
      .names = &names,
      // The model has no maximum length.
      .derive = [](Hyperparameters &h) { h.maxPositions = 1 << 20; },
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"embedding_length", &H::hidden, ranges::width},
    {"context_length", &H::maxPositions, ranges::positions},
    {"block_count", &H::layers, ranges::layers},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::mambaKeys, gguf::rmsNormKeys};
// There is neither attention nor an MLP.
static constexpr FixedKey ggufFixed[] = {{"attention.head_count", "[0]"},
                                         {"feed_forward_length", "[0]"}};
static constexpr GgufFlag ggufFlags[] = {{&H::convBias, "blk.*.ssm_conv1d.bias"}};

constexpr GgufArchitecture ggufMamba2 = {
    .name = "mamba2", .keys = ggufKeys, .fixed = ggufFixed, .flags = ggufFlags};

} // namespace mica
