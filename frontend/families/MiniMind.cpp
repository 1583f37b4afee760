// MiniMind (github.com/jingyaogong/minimind), whose three generations share the model_type. The
// constants are those of the authors' code: generation 1 at 58e3af0, 2 at c090b69, 3 at d65ef2c.

#include "frontend/families/Families.h"

#include "frontend/support/InputError.h"

#include <cmath>
#include <numbers>

namespace mica {
namespace {

using H = Hyperparameters;

constexpr llvm::StringLiteral architectures[] = {"MiniMindLM", "MiniMindForCausalLM"};

/// Keys of the mixture of experts that generations 1 and 2 share; read only if use_moe is true.
constexpr KeyRule routedKeys[] = {
    {"use_moe", &H::sparse, {}, false},
    {"n_routed_experts", &H::experts, ranges::experts, int64_t(4)},
    {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(2)},
    {"norm_topk_prob", &H::normalizeGate, {}, true},
};

constexpr KeyRule keysOf1[] = {
    {"dim", &H::hidden, ranges::width},
    {"n_layers", &H::layers, ranges::layers, int64_t(8)},
    {"n_heads", &H::heads, ranges::heads},
    {"n_kv_heads", &H::kvHeads, ranges::heads, Required(), Null::Allowed},
    {"vocab_size", &H::vocab, ranges::vocab, int64_t(6400)},
    optionalKey("hidden_dim", &H::inner, ranges::width),
    {"multiple_of", &H::innerMultiple, ranges::width, int64_t(64)},
    {"norm_eps", &H::eps, ranges::eps, 1e-5},
    {"max_seq_len", &H::maxPositions, ranges::positions},
    // The code of 2024 had no such key and 1e4 in its place; the code of 2025 always writes it.
    {"rope_theta", &H::theta, ranges::theta, 1e4},
    {"n_shared_experts", NotNull{&H::sharedExperts}, {}, int64_t(1)},
};

/// Sizes and norms of generations 2 and 3 that differ from the common keys.
constexpr KeyRule sharedKeysOf2And3[] = {
    {"num_hidden_layers", &H::layers, ranges::layers, int64_t(8)},
    {"num_attention_heads", &H::heads, ranges::heads, int64_t(8)},
    {"vocab_size", &H::vocab, ranges::vocab, int64_t(6400)},
    optionalKey("intermediate_size", &H::inner, ranges::width),
    {"max_position_embeddings", &H::maxPositions, ranges::positions, int64_t(32768)},
    {"inference_rope_scaling", &H::yarnFlag, {}, false},
};

constexpr KeyRule keysOf2[] = {
    {"hidden_size", &H::hidden, ranges::width, int64_t(512)},
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2), Null::Allowed},
    {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
    {"n_shared_experts", &H::sharedExperts, {0, 64}, int64_t(1)},
};

constexpr KeyRule keysOf3[] = {
    {"hidden_size", &H::hidden, ranges::width, int64_t(768)},
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4), Null::Allowed},
    {"use_moe", &H::sparse, {}, false},
    {"num_experts", &H::experts, ranges::experts, int64_t(4)},
    {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(1)},
    optionalKey("moe_intermediate_size", &H::expertInner, ranges::width),
    {"norm_topk_prob", &H::normalizeGate, {}, true},
    {"tie_word_embeddings", &H::tiedHead, {}, true},
};

constexpr FixedKey fixedOf1[] = {
    {"scoring_func", R"(["softmax"])"},
    {"tie_word_embeddings", "[true]"},
    {"use_mla", "[false]"},
};
constexpr FixedKey fixedOf2[] = {
    {"scoring_func", R"(["softmax"])"},
    {"tie_word_embeddings", "[true]"},
};

constexpr IgnoredKeyRow ignoredKeys[] = {{"flash_attn", reasons::implementation}};

/// I = m * ceil(int(2 * 4C / 3) / m).
void deriveOf1(Hyperparameters &h) {
  h.tiedHead = true;
  if (!h.inner)
    h.inner = llvm::alignTo(2 * 4 * *h.hidden / 3, *h.innerMultiple);
  h.expertInner = h.inner;
}

/// I = 64 * ceil(int(8C / 3) / 64).
void deriveOf2(Hyperparameters &h) {
  h.tiedHead = true;
  if (!h.inner)
    h.inner = llvm::alignTo(8 * *h.hidden / 3, 64);
  h.expertInner = h.inner;
}

/// I = 64 * ceil(pi C / 64).
void deriveOf3(Hyperparameters &h) {
  if (!h.inner)
    h.inner = 64 * static_cast<int64_t>(std::ceil(*h.hidden * std::numbers::pi / 64));
  if (!h.expertInner)
    h.expertInner = h.inner;
}

/// In autumn 2025, the same name stood for another formula.
llvm::Error refuseAutumn2025(const YarnScaling &yarn, llvm::StringRef path) {
  if (yarn.betaFast != 4 || yarn.factor != 4)
    return llvm::Error::success();
  return inputError(path,
                    "has the yarn of MiniMind's autumn 2025 (beta_fast 4, factor 4), whose formula "
                    "is not supported",
                    "convert the model with later code");
}

constexpr OwnYarn yarn = {
    .original = 2048, .factor = 16, .attentionFactor = 1, .check = refuseAutumn2025};

const Family &generation(unsigned number) {
  static const llvm::ArrayRef<KeyRule> keys1[] = {keysOf1, routedKeys};
  static const llvm::ArrayRef<KeyRule> keys2[] = {keysOf2, sharedKeysOf2And3, routedKeys,
                                                  commonKeys()};
  static const llvm::ArrayRef<KeyRule> keys3[] = {keysOf3, sharedKeysOf2And3, commonKeys()};
  static const Family families[] = {
      {.name = "minimind (generation 1)",
       .architectures = architectures,
       .keys = keys1,
       .fixed = fixedOf1,
       .traits = {.pairing = Pairing::Interleaved, .normalizesSingleExpert = false},
       .names = &metaNames,
       .derive = deriveOf1,
       .ignoredKeys = ignoredKeys},
      {.name = "minimind (generation 2)",
       .architectures = architectures,
       .keys = keys2,
       .fixed = fixedOf2,
       .traits = {.ownYarn = &yarn, .normalizesSingleExpert = false, .defaultTheta = 1e6},
       .derive = deriveOf2,
       .ignoredKeys = ignoredKeys},
      {.name = "minimind (generation 3)",
       .architectures = architectures,
       .keys = keys3,
       .fixed = {},
       .traits = {.normRounding = NormRounding::AfterWeight,
                  .qkNorm = QkNorm::PerHead,
                  .ownYarn = &yarn,
                  .defaultTheta = 1e6},
       .derive = deriveOf3,
       .ignoredKeys = ignoredKeys},
  };
  return families[number - 1];
}

/// Evidence for one of the generations.
struct Sign {
  unsigned generation;
  std::string what;
};

std::vector<Sign> signsIn(const FamilyEvidence &evidence) {
  std::vector<Sign> signs;
  constexpr std::pair<llvm::StringLiteral, unsigned> keys[] = {
      {"dim", 1}, {"head_dim", 3}, {"num_experts", 3}, {"n_routed_experts", 2}};
  bool isFirst = evidence.config->get("dim");
  for (auto [key, number] : keys)
    // Generation 1 also has n_routed_experts.
    if (evidence.config->get(key) && !(isFirst && number == 2))
      signs.push_back({number, "the key " + inQuotes(key)});
  if (!evidence.hasTensor)
    return signs;
  if (evidence.hasTensor("model.layers.0.self_attn.q_norm.weight"))
    signs.push_back({3, "the tensor \"model.layers.0.self_attn.q_norm.weight\""});
  else if (evidence.hasTensor("model.embed_tokens.weight"))
    signs.push_back({2, "the absence of q_norm tensors"});
  else if (evidence.hasTensor("tok_embeddings.weight"))
    signs.push_back({1, "the tensor \"tok_embeddings.weight\""});
  return signs;
}

} // namespace

// Three generations, distinguished by their keys and tensors.
llvm::Expected<const Family *> chooseMiniMind(const FamilyEvidence &evidence) {
  std::vector<Sign> signs = signsIn(evidence);
  if (signs.empty())
    return inputError(evidence.path,
                      "does not identify the generation of MiniMind (no "
                      "dim, head_dim, num_experts or n_routed_experts)",
                      "add \"head_dim\" for generation 3 or the weights");
  for (const Sign &sign : signs)
    if (sign.generation != signs.front().generation)
      return inputError(evidence.path,
                        signs.front().what + " says MiniMind generation " +
                            llvm::Twine(signs.front().generation) + ", but " + sign.what +
                            " says generation " + llvm::Twine(sign.generation),
                        "correct the config or download the weights that belong to it");
  return &generation(signs.front().generation);
}

} // namespace mica
