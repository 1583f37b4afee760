#include "tests/unit/frontend/import/GgufFolder.h"

#include "frontend/config/ConfigReader.h"
#include "ir/Mica/Mica.h"

#include <cmath>
#include <numbers>

namespace mica::test {

GgufFolder::GgufFolder(const std::string &folder)
    : weights(llvm::cantFail(WeightFiles::open(folder))),
      config(llvm::cantFail(readModelConfig(folder, &weights))) {}

const SparseConfig *GgufFolder::sparse() const {
  return std::get_if<SparseConfig>(&config.layerTypes.front().ffn);
}

std::string GgufFolder::architecture() const {
  constexpr std::pair<const char *, const char *> names[] = {
      {"llama", "llama"}, {"mistral", "llama"},      {"mixtral", "llama"},
      {"gemma", "gemma"}, {"gemma2", "gemma2"},      {"granite", "granite"},
      {"olmo2", "olmo2"}, {"phi3", "phi3"},          {"qwen2", "qwen2"},
      {"qwen3", "qwen3"}, {"qwen2_moe", "qwen2moe"}, {"qwen3_moe", "qwen3moe"}};
  const AttentionConfig &attention = config.layerTypes.front().attention;
  auto is = [&](auto test) { return llvm::any_of(config.layerTypes, test); };
  bool hasWindow = is([](const LayerType &kind) { return kind.attention.window.has_value(); }),
       mixes = is([&](const LayerType &kind) {
         return kind.ffn.index() != config.layerTypes[0].ffn.index();
       }),
       hasYarn = std::holds_alternative<YarnScaling>(attention.rope.scaling),
       isDynamic = std::holds_alternative<DynamicScaling>(attention.rope.scaling);
  // The file does not contain the attention scale, which follows from the head size except in one
  // model.
  bool hasOwnScale =
      config.family == "gemma2" && attention.scale != 1 / std::sqrt(double(attention.headDim));
  // Nor the activation, which follows from the architecture.
  bool hasOwnActivation = is([](const LayerType &kind) {
    if (std::holds_alternative<std::monostate>(kind.ffn))
      return false;
    auto *dense = std::get_if<DenseConfig>(&kind.ffn);
    Activation own = (dense ? *dense : std::get<SparseConfig>(kind.ffn).expert).activation;
    return own == Activation::Relu2 || own == Activation::QuickGelu;
  });
  if (mixes || isDynamic || hasOwnScale || hasOwnActivation)
    return "";
  if (llvm::StringRef(config.family).starts_with("minimind")) {
    bool hasNorms = attention.qkNorm == QkNorm::PerHead;
    return hasYarn || (sparse() && !hasNorms) ? ""
           : hasNorms                         ? (sparse() ? "qwen3moe" : "qwen3")
                                              : "llama";
  }
  for (auto [family, name] : names)
    if (config.family == family)
      return hasWindow && config.family != "gemma2" && config.family != "phi3" ? "" : name;
  return "";
}

/// Whether the converter permutes rows of q and k: for llama and architectures converted like it.
bool GgufFolder::reorders() const {
  return (architecture() == "llama" || architecture() == "granite") &&
         config.layerTypes.front().attention.rope.pairing == Pairing::Half;
}

void GgufFolder::writeKeys(GgufWriter &file) const {
  std::string own = architecture() + ".";
  const LayerType &kind = config.layerTypes.front();
  const AttentionConfig &attention = kind.attention;
  file.string("general.architecture", architecture()).string("general.type", "model");
  file.u32(own + "context_length", config.maxPositions);
  file.u32(own + "embedding_length", config.hidden);
  file.u32(own + "block_count", config.layers.size());
  file.u32(own + "attention.head_count", attention.heads);
  file.list<int32_t>(own + "attention.head_count_kv", GgufKind::I32,
                     std::vector<int32_t>(config.layers.size(), attention.kvHeads));
  file.u32(own + "attention.key_length", attention.headDim);
  file.u32(own + "attention.value_length", attention.headDim);
  file.u32(own + "rope.dimension_count", attention.rope.dimensions);
  file.f32(own + "attention.layer_norm_rms_epsilon", config.norm.eps);
  file.u32(own + "vocab_size", config.vocab);
  if (sparse())
    writeExpertKeys(file);
  else
    file.u32(own + "feed_forward_length", std::get<DenseConfig>(kind.ffn).inner);
  if (config.generation.bos)
    file.u32("tokenizer.ggml.bos_token_id", *config.generation.bos);
  for (size_t i = 0; i < std::min<size_t>(2, config.generation.eos.size()); ++i)
    file.u32(i == 0 ? "tokenizer.ggml.eos_token_id" : "tokenizer.ggml.eot_token_id",
             config.generation.eos[i]);
  writeScales(file);
  writeRope(file);
}

void GgufFolder::writeExpertKeys(GgufWriter &file) const {
  std::string own = architecture() + ".";
  file.u32(own + "feed_forward_length", sparse()->expert.inner);
  file.u32(own + "expert_count", sparse()->experts);
  file.u32(own + "expert_used_count", sparse()->expertsPerToken);
  if (architecture() == "llama")
    return;
  file.u32(own + "expert_feed_forward_length", sparse()->expert.inner);
  file.boolean(own + "expert_weights_norm", sparse()->normalize);
  if (sparse()->sharedExperts)
    file.u32(own + "expert_shared_feed_forward_length", sparse()->shared.inner);
}

/// Multipliers and soft-caps, which few families have.
void GgufFolder::writeScales(GgufWriter &file) const {
  std::string own = architecture() + ".";
  const AttentionConfig &attention = config.layerTypes.front().attention;
  for (const LayerType &kind : config.layerTypes)
    if (kind.attention.window) {
      file.u32(own + "attention.sliding_window", *kind.attention.window);
      break;
    }
  if (architecture() == "gemma2") {
    file.f32(own + "attn_logit_softcapping", attention.softcap.value_or(0));
    file.f32(own + "final_logit_softcapping", config.logitSoftcap.value_or(0));
  } else if (architecture() == "granite") {
    file.f32(own + "attention.scale", attention.scale);
    file.f32(own + "embedding_scale", config.embeddingMultiplier);
    file.f32(own + "residual_scale", config.block.residualMultiplier);
    file.f32(own + "logit_scale", 1 / config.logitMultiplier);
  }
}

void GgufFolder::writeRope(GgufWriter &file) const {
  const RopeConfig &rope = config.layerTypes.front().attention.rope;
  std::string own = architecture() + ".rope.";
  file.f32(own + "freq_base", rope.theta);
  if (auto *linear = std::get_if<LinearScaling>(&rope.scaling)) {
    file.string(own + "scaling.type", "linear").f32(own + "scaling.factor", linear->factor);
  } else if (auto *yarn = std::get_if<YarnScaling>(&rope.scaling)) {
    file.string(own + "scaling.type", "yarn").f32(own + "scaling.factor", yarn->factor);
    file.u32(own + "scaling.original_context_length", yarn->original);
    file.f32(own + "scaling.yarn_attn_factor", yarn->attentionFactor);
    file.f32(own + "scaling.yarn_beta_fast", yarn->betaFast);
    file.f32(own + "scaling.yarn_beta_slow", yarn->betaSlow);
  } else if (auto *llama3 = std::get_if<Llama3Scaling>(&rope.scaling)) {
    std::vector<float> factors;
    for (int64_t i = 0; i < rope.dimensions / 2; ++i) {
      double frequency = std::pow(rope.theta, -2.0 * double(i) / double(rope.dimensions)),
             turns = double(llama3->original) * frequency / (2 * std::numbers::pi),
             smooth =
                 (turns - llama3->lowFrequency) / (llama3->highFrequency - llama3->lowFrequency);
      factors.push_back(smooth < 0   ? llama3->factor
                        : smooth > 1 ? 1
                                     : 1 / ((1 - smooth) / llama3->factor + smooth));
    }
    file.floats("rope_freqs.weight", {int64_t(factors.size())}, factors);
  } else if (auto *longRope = std::get_if<LongRopeScaling>(&rope.scaling)) {
    file.u32(own + "scaling.original_context_length", longRope->original);
    file.f32(own + "scaling.attn_factor", longRope->attentionFactor);
    auto write = [&](const char *name, const std::vector<double> &factors) {
      file.floats(name, {int64_t(factors.size())}, {factors.begin(), factors.end()});
    };
    write("rope_factors_short.weight", longRope->shortFactors);
    write("rope_factors_long.weight", longRope->longFactors);
  }
}

void GgufFolder::put(GgufWriter &file, const std::string &to, const std::string &from,
                     int64_t heads) const {
  for (std::string part : {".weight", ".bias"}) {
    const TensorInfo *tensor = weights.find(from + part);
    if (!tensor)
      continue;
    std::string bytes = llvm::toStringRef(weights.bytes(*tensor)).str();
    if (heads > 0) {
      size_t rows = tensor->shape.front(), row = bytes.size() / rows, head = rows / heads;
      std::string ordered;
      for (size_t i = 0; i < rows; ++i) {
        size_t within = i % head, source = i - within + within % 2 * (head / 2) + within / 2;
        ordered += bytes.substr(source * row, row);
      }
      bytes = ordered;
    }
    file.tensor(to + part, {tensor->shape.begin(), tensor->shape.end()}, bytes);
  }
}

void GgufFolder::writeExperts(GgufWriter &file, const std::string &name, const std::string &prefix,
                              const std::string &product) const {
  auto [before, after] = llvm::StringRef(config.names->expert).split('*');
  int64_t experts = sparse()->experts;
  std::string bytes;
  std::vector<int64_t> shape = {experts};
  for (int64_t i = 0; i < experts; ++i) {
    const TensorInfo *tensor = weights.find(prefix + before.str() + std::to_string(i) +
                                            after.str() + "." + product + ".weight");
    bytes += llvm::toStringRef(weights.bytes(*tensor)).str();
    if (i == 0)
      shape.insert(shape.end(), tensor->shape.begin(), tensor->shape.end());
  }
  file.tensor(name + ".weight", shape, bytes);
}

void GgufFolder::putNorm(GgufWriter &file, const std::string &to, const std::string &from) const {
  const TensorInfo *tensor = weights.find(from + ".weight");
  if (!tensor)
    return;
  std::vector<float> normWeights(tensor->shape.front());
  std::memcpy(normWeights.data(), weights.bytes(*tensor).data(), tensor->size);
  for (float &weight : normWeights)
    weight += config.norm.weightOffset;
  file.floats(to + ".weight", {int64_t(normWeights.size())}, normWeights);
}

void GgufFolder::writeLayer(GgufWriter &file, int64_t layer) const {
  const NamingTable &names = *config.names;
  const AttentionConfig &attention = config.layerTypes.front().attention;
  std::string to = "blk." + std::to_string(layer) + ".",
              from = names.layers.str() + "." + std::to_string(layer) + ".";
  bool hasPostNorms = !names.postAttentionNorm.empty();
  if (config.block.preNorms) {
    putNorm(file, to + "attn_norm", from + names.attentionNorm.str());
    putNorm(file, to + "ffn_norm", from + names.ffnNorm.str());
  }
  if (hasPostNorms) {
    putNorm(file, to + "post_attention_norm", from + names.postAttentionNorm.str());
    putNorm(file, to + "post_ffw_norm", from + names.postFfnNorm.str());
  }
  if (!names.qkv.empty())
    put(file, to + "attn_qkv", from + names.qkv.str());
  put(file, to + "attn_q", from + names.query.str(), reorders() ? attention.heads : 0);
  put(file, to + "attn_k", from + names.key.str(), reorders() ? attention.kvHeads : 0);
  put(file, to + "attn_v", from + names.value.str());
  putNorm(file, to + "attn_q_norm", from + names.queryNorm.str());
  putNorm(file, to + "attn_k_norm", from + names.keyNorm.str());
  put(file, to + "attn_output", from + names.out.str());
  writeNetwork(file, to, from);
}

void GgufFolder::writeNetwork(GgufWriter &file, const std::string &to,
                              const std::string &from) const {
  const NamingTable &names = *config.names;
  if (!sparse()) {
    if (!names.gateUp.empty())
      put(file, to + "ffn_up", from + names.gateUp.str());
    put(file, to + "ffn_gate", from + names.gate.str());
    if (names.gateUp.empty())
      put(file, to + "ffn_up", from + names.up.str());
    put(file, to + "ffn_down", from + names.down.str());
    return;
  }
  put(file, to + "ffn_gate_inp", from + names.router.str());
  writeExperts(file, to + "ffn_gate_exps", from, names.expertGate.str());
  writeExperts(file, to + "ffn_up_exps", from, names.expertUp.str());
  writeExperts(file, to + "ffn_down_exps", from, names.expertDown.str());
  if (!sparse()->sharedExperts)
    return;
  std::string shared = from + names.sharedExpert.str() + ".";
  put(file, to + "ffn_gate_shexp", shared + names.expertGate.str());
  put(file, to + "ffn_up_shexp", shared + names.expertUp.str());
  put(file, to + "ffn_down_shexp", shared + names.expertDown.str());
  const TensorInfo *gate = weights.find(from + names.sharedExpertGate.str() + ".weight");
  file.tensor(to + "ffn_gate_inp_shexp.weight", {config.hidden},
              llvm::toStringRef(weights.bytes(*gate)).str());
}

GgufWriter GgufFolder::write() const {
  GgufWriter file;
  const NamingTable &names = *config.names;
  writeKeys(file);
  put(file, "token_embd", names.embedding.str());
  putNorm(file, "output_norm", names.finalNorm.str());
  if (!config.tiedHead)
    put(file, "output", names.head.str());
  for (size_t layer = 0; layer < config.layers.size(); ++layer)
    writeLayer(file, layer);
  return file;
}

} // namespace mica::test
