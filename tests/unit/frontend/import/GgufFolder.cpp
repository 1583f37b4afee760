#include "tests/unit/frontend/import/GgufFolder.h"

#include "frontend/config/ConfigReader.h"
#include "ir/Mica/Mica.h"

#include <cmath>
#include <numbers>

namespace mica::test {

GgufFolder::GgufFolder(const std::string &folder)
    : weights(llvm::cantFail(WeightFiles::open(folder))),
      config(llvm::cantFail(readModelConfig(folder, &weights))) {}

bool GgufFolder::isSparse() const {
  return std::holds_alternative<SparseConfig>(config.kinds.front().ffn);
}

std::string GgufFolder::architecture() const {
  const AttentionConfig &attention = config.kinds.front().attention;
  bool hasYarn = std::holds_alternative<YarnScaling>(attention.rope.scaling);
  bool hasNorms = attention.qkNorm == QkNorm::PerHead;
  llvm::StringRef family = config.family;
  if (family != "llama" && !family.starts_with("qwen3") && !family.starts_with("minimind"))
    return "";
  if (config.kinds.size() != 1 || (isSparse() && !hasNorms) ||
      (hasYarn && config.family.find("minimind") != std::string::npos))
    return "";
  return hasNorms ? (isSparse() ? "qwen3moe" : "qwen3") : "llama";
}

void GgufFolder::writeKeys(GgufWriter &file) const {
  std::string own = architecture() + ".";
  const LayerKind &kind = config.kinds.front();
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
  file.u32(own + "rope.dimension_count", attention.headDim);
  file.f32(own + "attention.layer_norm_rms_epsilon", config.norm.eps);
  file.u32(own + "vocab_size", config.vocab);
  if (auto *dense = std::get_if<DenseConfig>(&kind.ffn)) {
    file.u32(own + "feed_forward_length", dense->inner);
  } else {
    auto &sparse = std::get<SparseConfig>(kind.ffn);
    file.u32(own + "feed_forward_length", sparse.expert.inner);
    file.u32(own + "expert_feed_forward_length", sparse.expert.inner);
    file.u32(own + "expert_count", sparse.experts);
    file.u32(own + "expert_used_count", sparse.expertsPerToken);
    file.boolean(own + "expert_weights_norm", sparse.normalise);
  }
  if (config.generation.bos)
    file.u32("tokenizer.ggml.bos_token_id", *config.generation.bos);
  for (size_t i = 0; i < std::min<size_t>(2, config.generation.eos.size()); ++i)
    file.u32(i == 0 ? "tokenizer.ggml.eos_token_id" : "tokenizer.ggml.eot_token_id",
             config.generation.eos[i]);
  writeRope(file);
}

void GgufFolder::writeRope(GgufWriter &file) const {
  const RopeConfig &rope = config.kinds.front().attention.rope;
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
  int64_t experts = std::get<SparseConfig>(config.kinds.front().ffn).experts;
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

void GgufFolder::writeLayer(GgufWriter &file, int64_t layer) const {
  const NamingTable &names = *config.names;
  const AttentionConfig &attention = config.kinds.front().attention;
  std::string to = "blk." + std::to_string(layer) + ".",
              from = names.layers.str() + "." + std::to_string(layer) + ".";
  bool reorders = architecture() == "llama" && attention.rope.pairing == Pairing::Half;
  put(file, to + "attn_norm", from + names.attentionNorm.str());
  put(file, to + "attn_q", from + names.query.str(), reorders ? attention.heads : 0);
  put(file, to + "attn_k", from + names.key.str(), reorders ? attention.kvHeads : 0);
  put(file, to + "attn_v", from + names.value.str());
  put(file, to + "attn_q_norm", from + names.queryNorm.str());
  put(file, to + "attn_k_norm", from + names.keyNorm.str());
  put(file, to + "attn_output", from + names.out.str());
  put(file, to + "ffn_norm", from + names.ffnNorm.str());
  if (isSparse()) {
    put(file, to + "ffn_gate_inp", from + names.router.str());
    writeExperts(file, to + "ffn_gate_exps", from, names.expertGate.str());
    writeExperts(file, to + "ffn_up_exps", from, names.expertUp.str());
    writeExperts(file, to + "ffn_down_exps", from, names.expertDown.str());
    return;
  }
  put(file, to + "ffn_gate", from + names.gate.str());
  put(file, to + "ffn_up", from + names.up.str());
  put(file, to + "ffn_down", from + names.down.str());
}

GgufWriter GgufFolder::write() const {
  GgufWriter file;
  const NamingTable &names = *config.names;
  writeKeys(file);
  put(file, "token_embd", names.embedding.str());
  put(file, "output_norm", names.finalNorm.str());
  if (!config.tiedHead)
    put(file, "output", names.head.str());
  for (size_t layer = 0; layer < config.layers.size(); ++layer)
    writeLayer(file, layer);
  return file;
}

} // namespace mica::test
