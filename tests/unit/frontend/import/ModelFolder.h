//===- ModelFolder.h - model folders made for a test ------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_IMPORT_MODELFOLDER_H
#define MICA_TESTS_UNIT_FRONTEND_IMPORT_MODELFOLDER_H

#include "tests/unit/frontend/TestFolder.h"

#include <algorithm>

namespace mica::test {

/// A llama with two layers, 4 query and 2 key/value heads of 8 elements, that a test can modify
/// before it is written.
struct TinyModel {
  std::string config =
      R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2})";
  std::vector<Tensor> tensors = everyTensor();

  static std::vector<Tensor> everyTensor() {
    std::vector<Tensor> all = {{"model.embed_tokens.weight", {96, 32}},
                               {"model.norm.weight", {32}}};
    for (const char *layer : {"model.layers.0.", "model.layers.1."})
      for (Tensor tensor : std::vector<Tensor>{{"input_layernorm.weight", {32}},
                                               {"self_attn.q_proj.weight", {32, 32}},
                                               {"self_attn.k_proj.weight", {16, 32}},
                                               {"self_attn.v_proj.weight", {16, 32}},
                                               {"self_attn.o_proj.weight", {32, 32}},
                                               {"post_attention_layernorm.weight", {32}},
                                               {"mlp.gate_proj.weight", {48, 32}},
                                               {"mlp.up_proj.weight", {48, 32}},
                                               {"mlp.down_proj.weight", {32, 48}}}) {
        tensor.name = layer + tensor.name;
        all.push_back(tensor);
      }
    return all;
  }

  Tensor &tensor(const std::string &name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const Tensor &t) { return t.name == name; });
  }
  void erase(const std::string &name) {
    std::erase_if(tensors, [&](const Tensor &t) { return t.name == name; });
  }
  void writeTo(const TestFolder &folder) const {
    folder.write("config.json", config);
    folder.write("model.safetensors", safetensors(tensors));
  }
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_IMPORT_MODELFOLDER_H
