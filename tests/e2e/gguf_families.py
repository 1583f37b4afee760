"""Folders of families whose tensors have another layout in GGUF files, or that have keys of their own, converted as by llama.cpp:
names by table, layouts by a function per family."""

import re

import numpy as np

import checkpoint
import gguf_file
from gguf_file import BOOL, F32, I32, STRING, U32

# Keys after the architecture's name, and the config's; or a function of the config.
SIZES = {"context_length": "max_position_embeddings", "embedding_length": "hidden_size",
         "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size",
         "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads"}
RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
GPT2 = {"context_length": "n_positions", "embedding_length": "n_embd", "block_count": "n_layer",
        "feed_forward_length": lambda c: 4 * c["n_embd"], "attention.head_count": "n_head",
        "attention.layer_norm_epsilon": "layer_norm_epsilon"}
BLOOM = {"context_length": lambda c: 2048, "embedding_length": "hidden_size", "block_count": "n_layer",
         "feed_forward_length": lambda c: 4 * c["hidden_size"], "attention.head_count": "n_head",
         "attention.head_count_kv": "n_head", "attention.layer_norm_epsilon": "layer_norm_epsilon"}
HEADS = {"attention.key_length": "head_dim", "attention.value_length": "head_dim"}


def rope(c, kind="full_attention"):
    parameters = c["rope_parameters"]
    return parameters.get(kind, parameters)


def rotated(c):
    size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    return int(size * rope(c)["partial_rotary_factor"])


THETA = {"rope.freq_base": lambda c: float(rope(c)["rope_theta"])}
FACTOR = {"rope.scaling.type": lambda c: rope(c)["rope_type"], "rope.scaling.factor": lambda c: rope(c)["factor"]}
YARN = FACTOR | {"rope.scaling.original_context_length": lambda c: rope(c)["original_max_position_embeddings"],
                 "rope.scaling.yarn_beta_fast": lambda c: rope(c)["beta_fast"],
                 "rope.scaling.yarn_beta_slow": lambda c: rope(c)["beta_slow"]}
DEEPSEEK = SIZES | RMS | THETA | YARN | {
    "rope.scaling.yarn_log_multiplier": lambda c: 0.1 * rope(c)["mscale_all_dim"],
    "rope.dimension_count": "qk_rope_head_dim", "leading_dense_block_count": "first_k_dense_replace",
    "attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank", "vocab_size": "vocab_size",
    "expert_count": "n_routed_experts", "expert_used_count": "num_experts_per_tok",
    "expert_shared_count": "n_shared_experts", "expert_feed_forward_length": "moe_intermediate_size",
    "expert_group_count": "n_group", "expert_group_used_count": "topk_group",
    "expert_weights_scale": "routed_scaling_factor", "expert_weights_norm": "norm_topk_prob"}
FIRST_DEEPSEEK = SIZES | RMS | {
    "rope.freq_base": "rope_theta", "leading_dense_block_count": "first_k_dense_replace", "vocab_size": "vocab_size",
    "rope.dimension_count": lambda c: c["hidden_size"] // c["num_attention_heads"],
    "rope.scaling.type": lambda c: "none", "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
    "expert_feed_forward_length": "moe_intermediate_size", "expert_weights_scale": lambda c: 1.0}
# Older files contain separate keys and values, newer ones the matrices that read latents.
HEADS_OF_V2 = {"attention.key_length": lambda c: c["qk_nope_head_dim"] + c["qk_rope_head_dim"],
               "attention.value_length": "v_head_dim"}
HEADS_OF_V3 = {"attention.key_length_mla": HEADS_OF_V2["attention.key_length"],
               "attention.value_length_mla": "v_head_dim", "attention.value_length": "kv_lora_rank",
               "attention.key_length": lambda c: c["kv_lora_rank"] + c["qk_rope_head_dim"],
               "attention.head_count_kv": lambda c: 1, "expert_gating_func": lambda c: 2}

LFM2 = SIZES | THETA | {
    "attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache", "vocab_size": "vocab_size",
    "attention.head_count_kv": lambda c: [0 if t == "conv" else c["num_key_value_heads"] for t in c["layer_types"]]}


MAMBA = {"ssm.conv_kernel": "mamba_d_conv", "ssm.state_size": "mamba_d_state", "ssm.group_count": "mamba_n_groups",
         "ssm.time_step_rank": "mamba_n_heads", "ssm.inner_size": lambda c: c["mamba_n_heads"] * c["mamba_d_head"]}
DELTA = SIZES | HEADS | RMS | THETA | {
    "rope.dimension_count": rotated, "ssm.conv_kernel": "linear_conv_kernel_dim", "ssm.state_size": "linear_key_head_dim",
    "ssm.group_count": "linear_num_key_heads", "ssm.time_step_rank": "linear_num_value_heads", "full_attention_interval": lambda c: 4,
    "ssm.inner_size": lambda c: c["linear_num_value_heads"] * c["linear_value_head_dim"],
    "attention.recurrent_layers": lambda c: [t == "linear_attention" for t in c["layer_types"]]}


def has_experts(c):
    return "moe" in c["layers_block_type"]


def of_blocks(c, kinds, size):
    """A number for each block, not 0 for those of some kinds, and for one for multi-token prediction in files with experts."""
    return [size if t in kinds else 0 for t in c["layers_block_type"]] + [size] * has_experts(c)


def of_experts(name):
    return lambda c: c[name] if has_experts(c) else None


NEMOTRON = HEADS | {
    "context_length": lambda c: 2**20, "embedding_length": "hidden_size", "attention.head_count": "num_attention_heads",
    "block_count": lambda c: len(c["layers_block_type"]) + has_experts(c),
    "feed_forward_length": lambda c: of_blocks(c, ("mlp", "moe"), c["moe_intermediate_size" if has_experts(c) else "intermediate_size"]),
    "attention.head_count_kv": lambda c: of_blocks(c, ("full_attention",), c["num_key_value_heads"]),
    "attention.layer_norm_epsilon": "layer_norm_epsilon", "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
    "rope.freq_base": lambda c: 10000.0, "rope.dimension_count": lambda c: c["hidden_size"] // c["num_attention_heads"],
    "rope.scaling.finetuned": lambda c: False, "vocab_size": "vocab_size", "ssm.conv_kernel": "conv_kernel",
    "ssm.state_size": "ssm_state_size", "ssm.group_count": "n_groups", "ssm.time_step_rank": "mamba_num_heads",
    "ssm.inner_size": lambda c: c["mamba_num_heads"] * c["mamba_head_dim"],
    "nextn_predict_layers": lambda c: 1 if has_experts(c) else None, "moe_latent_size": of_experts("moe_latent_size")}
NEMOTRON |= {f"expert_{key}": of_experts(name) for key, name in {
    "count": "n_routed_experts", "used_count": "num_experts_per_tok", "shared_count": "n_shared_experts",
    "group_count": "n_group", "group_used_count": "topk_group", "weights_norm": "norm_topk_prob",
    "weights_scale": "routed_scaling_factor", "feed_forward_length": "moe_intermediate_size",
    "shared_feed_forward_length": "moe_shared_expert_intermediate_size"}.items()}
SECTIONS = {"rope.dimension_sections": lambda c: rope(c).get("mrope_section", [11, 11, 10]) + [0]}
SHARED = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
          "expert_feed_forward_length": "moe_intermediate_size",
          "expert_shared_feed_forward_length": "shared_expert_intermediate_size"}
# With a layer for multi-token prediction.
NEXTN = {"nextn_predict_layers": lambda c: 1, "block_count": lambda c: c["num_hidden_layers"] + 1,
         "attention.recurrent_layers": lambda c: DELTA["attention.recurrent_layers"](c) + [False]}


def of_global(name):
    """A size of layers without a window."""
    def size(c):
        layer = c["layer_types"].index("full_attention")
        return {int(k): v for k, v in c["per_layer_config"].items()}[layer].get(name, c[name])
    return size


def has_window(c):
    return [t == "sliding_attention" for t in c["layer_types"]]


def inner_of_gemma4(c):
    inner, shared = c["intermediate_size"], c["num_kv_shared_layers"]
    return [inner] * (c["num_hidden_layers"] - shared) + [2 * inner] * shared if c["use_double_wide_mlp"] else inner


GEMMA4 = SIZES | RMS | THETA | {
    "feed_forward_length": inner_of_gemma4, "attention.key_length": of_global("head_dim"), "attention.value_length": of_global("head_dim"),
    "attention.key_length_swa": "head_dim", "attention.value_length_swa": "head_dim", "rope.dimension_count": of_global("head_dim"),
    "rope.dimension_count_swa": "head_dim", "attention.shared_kv_layers": "num_kv_shared_layers",
    "attention.head_count_kv": lambda c: [c["num_key_value_heads"] if w else of_global("num_key_value_heads")(c) for w in has_window(c)],
    "attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": has_window,
    "embedding_length_per_layer_input": "hidden_size_per_layer_input", "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base_swa": lambda c: float(rope(c, "sliding_attention")["rope_theta"]), "expert_count": "num_experts",
    "expert_used_count": "top_k_experts", "expert_feed_forward_length": "moe_intermediate_size"}


def inner_of_lfm2(c):
    inner = int(c["block_ffn_dim_multiplier"] * int(2 * c["intermediate_size"] / 3))
    return inner + -inner % c["block_multiple_of"]


ARCHITECTURES = {
    "bamba": ("granitehybrid", SIZES | RMS | THETA | MAMBA | {
        "attention.head_count_kv": lambda c: [c["num_key_value_heads"] * (i in c["attn_layer_indices"])
                                              for i in range(c["num_hidden_layers"])],
        "rope.dimension_count": rotated, "rope.scaling.finetuned": lambda c: True, "vocab_size": "vocab_size"}),
    "bloom": ("bloom", BLOOM),
    "cohere": ("command-r", SIZES | THETA | {"attention.layer_norm_epsilon": "layer_norm_eps",
                                             "logit_scale": "logit_scale", "rope.scaling.type": lambda c: "none"}),
    "deepseek": ("deepseek", FIRST_DEEPSEEK),
    "deepseek_v2": ("deepseek2", DEEPSEEK | HEADS_OF_V2),
    "deepseek_v3": ("deepseek2", DEEPSEEK | HEADS_OF_V3),
    "gemma3_text": ("gemma3", SIZES | HEADS | RMS | THETA | FACTOR | {
        "attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "sliding_window_pattern",
        "rope.freq_base_swa": lambda c: float(rope(c, "sliding_attention")["rope_theta"]),
        "final_logit_softcapping": "final_logit_softcapping"}),
    "gemma4_text": ("gemma4", GEMMA4),
    "glm4": ("glm4", SIZES | HEADS | RMS | THETA | {"rope.dimension_count": rotated}),
    "gpt2": ("gpt2", GPT2),
    "gpt_neox": ("gptneox", {key: name for key, name in SIZES.items() if "kv" not in key} | {
        "rope.dimension_count": rotated, "use_parallel_residual": "use_parallel_residual",
        "attention.layer_norm_epsilon": "layer_norm_eps"}),
    "gpt_oss": ("gpt-oss", SIZES | HEADS | RMS | THETA | YARN | {
        "attention.sliding_window": "sliding_window", "expert_count": "num_local_experts",
        "expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "intermediate_size"}),
    "lfm2": ("lfm2", LFM2 | {"feed_forward_length": inner_of_lfm2}),
    "lfm2_moe": ("lfm2moe", LFM2 | {
        "leading_dense_block_count": "num_dense_layers", "expert_count": "num_experts", "expert_gating_func": lambda c: 2,
        "expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "moe_intermediate_size",
        "expert_weights_scale": "routed_scaling_factor"}),
    "mamba2": ("mamba2", {
        "context_length": lambda c: 2**20, "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
        "feed_forward_length": lambda c: 0, "attention.head_count": lambda c: 0, "vocab_size": "vocab_size",
        "attention.layer_norm_rms_epsilon": "layer_norm_epsilon", "ssm.conv_kernel": "conv_kernel",
        "ssm.state_size": "state_size", "ssm.group_count": "n_groups", "ssm.time_step_rank": "num_heads",
        "ssm.inner_size": lambda c: c["num_heads"] * c["head_dim"]}),
    "falcon_h1": ("falcon-h1", SIZES | RMS | THETA | MAMBA | {"vocab_size": "vocab_size"}),
    "granitemoehybrid": ("granitehybrid", SIZES | RMS | THETA | MAMBA | {
        "feed_forward_length": lambda c: c["intermediate_size" if c["num_local_experts"] else "shared_intermediate_size"],
        "attention.head_count_kv": lambda c: [c["num_key_value_heads"] * (t == "full_attention") for t in c["layer_types"]],
        "rope.dimension_count": lambda c: c["hidden_size"] // c["num_attention_heads"],
        "rope.scaling.finetuned": lambda c: c["position_embedding_type"] == "rope",
        "attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
        "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling", "expert_count": "num_local_experts",
        "expert_used_count": "num_experts_per_tok", "expert_shared_feed_forward_length": "shared_intermediate_size"}),
    "nemotron_h": ("nemotron_h", NEMOTRON),
    "qwen3_next": ("qwen3next", DELTA | SHARED),
    "qwen3_5_text": ("qwen35", DELTA | SECTIONS),
    "qwen3_5_moe_text": ("qwen35moe", {k: v for k, v in DELTA.items() if k != "feed_forward_length"} | SECTIONS | SHARED),
    "stablelm": ("stablelm", SIZES | THETA | {"attention.layer_norm_epsilon": "layer_norm_eps",
                                              "use_parallel_residual": "use_parallel_residual",
                                              "rope.dimension_count": rotated}),
    "starcoder2": ("starcoder2", SIZES | THETA | {"attention.layer_norm_epsilon": "norm_epsilon"}),
}

TOP = gguf_file.TOP | {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm",
                       "word_embeddings": "token_embd", "word_embeddings_layernorm": "token_embd_norm",
                       "gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm",
                       "embed_out": "output", "model.embedding_norm": "token_embd_norm",
                       "backbone.embeddings": "token_embd", "backbone.norm_f": "output_norm",
                       "model.final_layernorm": "output_norm", "model.embed_tokens_per_layer": "per_layer_token_embd",
                       "model.per_layer_model_projection": "per_layer_model_proj",
                       "model.per_layer_projection_norm": "per_layer_proj_norm"}
LAYER = gguf_file.LAYER | {
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "self_attention.query_key_value": "attn_qkv",
    "self_attention.dense": "attn_output", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "mlp.router": "ffn_gate_inp", "post_self_attn_layernorm": "post_attention_norm",
    "post_mlp_layernorm": "post_ffw_norm", "operator_norm": "attn_norm", "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "feed_forward.gate": "ffn_gate_inp",
    "ffn_norm": "ffn_norm", "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up",
}
LAYER |= {f"mixer.{name}": to for name, to in {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "up_proj": "ffn_up",
    "down_proj": "ffn_down", "gate": "ffn_gate_inp", "shared_experts.up_proj": "ffn_up_shexp",
    "shared_experts.down_proj": "ffn_down_shexp", "fc1_latent_proj": "ffn_latent_down",
    "fc2_latent_proj": "ffn_latent_up"}.items()}
LAYER |= {f"conv.{name}": f"shortconv.{name}" for name in ("in_proj", "conv", "out_proj")}
LAYER |= {f"{module}.{name}": f"ssm_{to}" for module in ("mixer", "mamba", "linear_attn")
          for name, to in {"in_proj": "in", "conv1d": "conv1d", "norm": "norm", "out_proj": "out"}.items()}
LAYER |= {f"linear_attn.in_proj_{name}": to for name, to in {
    "qkv": "attn_qkv", "z": "attn_gate", "b": "ssm_beta", "a": "ssm_alpha", "ba": "ssm_ba"}.items()}
LAYER |= {f"feed_forward.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
LAYER |= {"norm": "attn_norm", "pre_ff_layernorm": "ffn_norm"}
LAYER |= {"per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
          "router.proj": "ffn_gate_inp", "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
          "post_feedforward_layernorm_1": "post_ffw_norm_1", "post_feedforward_layernorm_2": "post_ffw_norm_2"}
POST_NORMS = {"post_attention_layernorm": "post_attention_norm"}
# Of all but the first, the norm is before the network all the same.
DELTA_NETS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
OWN = dict.fromkeys(("gemma3_text", "gemma4_text", "gpt_oss", *DELTA_NETS), POST_NORMS)
# Tensors without a suffix after the module, at the end of a layer's name.
TENSORS = {"self_attn.sinks": "attn_sinks.weight", ".gate.e_score_correction_bias": "exp_probs_b.bias",
           "feed_forward.expert_bias": "exp_probs_b.bias", "layer_scalar": "layer_output_scale.weight",
           "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
           "experts.gate_up_proj": "ffn_gate_up_exps.weight", ".experts.down_proj": "ffn_down_exps.weight", ".A_log": "ssm_a", ".D": "ssm_d", ".dt_bias": "ssm_dt.bias"}

STACKED = {("mlp.experts", f"{name}_proj.weight"): f"ffn_{name}_exps" for name in ("gate", "up", "down")}
STACKED |= {("feed_forward.experts", f"w{i + 1}.weight"): f"ffn_{n}_exps" for i, n in enumerate(("gate", "down", "up"))}
STACKED |= {("mixer.experts", f"{name}_proj.weight"): f"ffn_{name}_exps" for name in ("up", "down")}
STACKED |= {(f"self_attn.{name}_layernorm.norms", "weight"): f"attn_{name}_norm" for name in "qk"}


def stacked(tensors):
    """Experts, and norms of heads, stacked to one tensor each."""
    groups = {}
    for name in list(tensors):
        found = re.fullmatch(r"(?:model|backbone)\.layers\.(\d+)\.(.*)\.(\d+)\.(.*)", name)
        if found:
            layer, module, number, part = found.groups()
            groups.setdefault((layer, module, part), {})[int(number)] = tensors.pop(name)
    for (layer, module, part), parts in groups.items():
        values = np.stack([parts[i] for i in range(len(parts))])
        yield f"blk.{layer}.{STACKED[module, part]}.weight", values


def of_gpt_oss(tensors):
    """Rows of gate and up alternate, in matrices that are stored transposed."""
    for name in [n for n in tensors if ".experts." in n]:
        values, layer = tensors.pop(name), name.split(".")[2]
        part = "bias" if name.endswith("_bias") else "weight"
        values = values if part == "bias" else values.swapaxes(1, 2)
        if "gate_up" in name:
            yield f"blk.{layer}.ffn_gate_exps.{part}", values[:, ::2]
            yield f"blk.{layer}.ffn_up_exps.{part}", values[:, 1::2]
        else:
            yield f"blk.{layer}.ffn_down_exps.{part}", values


def of_deepseek_v3(tensors, c):
    heads, plain = c["num_attention_heads"], c["qk_nope_head_dim"]
    for name in [n for n in tensors if "kv_b_proj" in n]:
        values = tensors.pop(name).reshape(heads, plain + c["v_head_dim"], -1)
        layer = name.split(".")[2]
        yield f"blk.{layer}.attn_k_b.weight", values[:, :plain].swapaxes(1, 2)
        yield f"blk.{layer}.attn_v_b.weight", values[:, plain:]


def of_granite(tensors, c):
    """Gate and up are halves of a tensor. Without experts, the shared network is the only one."""
    end = "_shexp" if c["num_local_experts"] else ""
    for name in [n for n in tensors if "_linear.weight" in n]:
        values, layer = tensors.pop(name), name.split(".")[2]
        kind = end if "shared_mlp" in name else "_exps"
        if "output" in name:
            yield f"blk.{layer}.ffn_down{kind}.weight", values
            continue
        for part, half in zip(("gate", "up"), np.split(values, 2, axis=-2)):
            yield f"blk.{layer}.ffn_{part}{kind}.weight", half
    for name in [n for n in tensors if "router" in n]:
        yield f"blk.{name.split('.')[2]}.ffn_gate_inp.weight", tensors.pop(name)


def of_qwen3_next(tensors, c):
    """Queries, keys and values of all heads, and their gates, which are stored key head by key head."""
    heads, size = c["linear_num_key_heads"], c["linear_key_head_dim"]
    shared = c["linear_num_value_heads"] // heads * c["linear_value_head_dim"]
    for name in [n for n in tensors if "in_proj_qkvz" in n]:
        values, layer = tensors.pop(name), name.split(".")[2]
        parts = np.split(values.reshape(heads, -1, values.shape[1]), np.cumsum((size, size, shared)), axis=1)
        q, k, v, z = (part.reshape(-1, values.shape[1]) for part in parts)
        yield f"blk.{layer}.attn_qkv.weight", np.concatenate([q, k, v])
        yield f"blk.{layer}.attn_gate.weight", z


def of_gemma4(c):
    """The factors of rope in layers without a window: 1 for the pairs that are rotated."""
    size, parameters = of_global("head_dim")(c), rope(c)
    pairs = int(size * parameters["partial_rotary_factor"] / 2)
    yield "rope_freqs.weight", np.array([1.0] * pairs + [1e30] * (size // 2 - pairs), np.float32)


def of_later_layer(layer):
    """Tensors of a layer for multi-token prediction."""
    for name in ("attn_norm", "attn_q", "nextn.eh_proj"):
        yield f"blk.{layer}.{name}.weight", np.ones((2, 2), np.float32)


def in_turn(name, values, c):
    """Value heads that share key heads in turn, and not several in a row one."""
    heads, of_all = c["linear_num_key_heads"], c["linear_num_value_heads"]
    if ".linear_attn." not in name or name.endswith("norm.weight"):
        return values
    axis = 1 if "out_proj" in name else 0
    first = 2 * heads * c["linear_key_head_dim"] if "qkv" in name or "conv1d" in name else 0
    kept, moved = np.split(values, [first], axis)
    shape = moved.shape
    grouped = moved.reshape(*shape[:axis], heads, of_all // heads, shape[axis] // of_all, *shape[axis + 1:])
    return np.concatenate([kept, grouped.swapaxes(axis, axis + 1).reshape(shape)], axis)


def multiplied(name, values, c):
    """Falcon H1's weights with its multipliers."""
    reads, makes = c["attention_in_multiplier"], c["attention_out_multiplier"]
    factors = {"embed_tokens": c["embedding_multiplier"], "lm_head": c["lm_head_multiplier"], "self_attn.o_proj": makes,
               "self_attn.q_proj": reads, "self_attn.k_proj": reads * c["key_multiplier"], "self_attn.v_proj": reads,
               "gate_proj": c["mlp_multipliers"][0], "down_proj": c["mlp_multipliers"][1],
               "mamba.out_proj": c["ssm_out_multiplier"]}
    if "mamba.in_proj" in name:
        inner, groups = c["mamba_d_ssm"], c["mamba_n_groups"] * c["mamba_d_state"]
        rows = np.repeat(c["ssm_multipliers"], [inner, inner, groups, groups, c["mamba_n_heads"]])
        return values * np.float32(c["ssm_in_multiplier"]) * rows.astype(np.float32)[:, None]
    return values * np.float32(next((factor for part, factor in factors.items() if part in name), 1))


def relaid(name, values, c):
    """The layout of a tensor after conversion, if its name is mapped one to one."""
    if c["model_type"] == "gpt2" and values.ndim == 2 and name.startswith("h."):
        return values.T
    if "query_key_value" in name:  # head by head
        heads = c.get("n_head") or c["num_attention_heads"]
        parts = values.reshape(heads, 3, values.shape[0] // heads // 3, *values.shape[1:])
        return parts.swapaxes(0, 1).reshape(values.shape)
    if c["model_type"] == "deepseek" and (".q_proj." in name or ".k_proj." in name):
        return gguf_file.interleaved(values, c["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"])
    family = c["model_type"]
    if family == "falcon_h1":
        values = multiplied(name, values, c)
    if family in DELTA_NETS and family != "qwen3_next":
        values = in_turn(name, values, c)
    if family in DELTA_NETS and name.endswith("norm.weight") and "linear_attn" not in name:
        return values + np.float32(1)
    if family in ("bamba", "granitemoehybrid", "nemotron_h") and (".q_proj." in name or ".k_proj." in name):
        return gguf_file.interleaved(values, c["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"])
    if name.endswith((".A_log", ".D")):
        values = -np.exp(values) if name.endswith("A_log") else values
        return values if "linear_attn" in name else values[:, None]
    if name.endswith(("mixer.norm.weight", "mamba.norm.weight")):
        return values.reshape(c.get("n_groups") or c["mamba_n_groups"], -1)
    if name.endswith("shared_expert_gate.weight"):
        return values[0]
    if ".conv.conv." in name or "conv1d.weight" in name:  # without the axis between channels and taps
        return values.squeeze(1)
    if c["model_type"] == "gemma3_text" and values.ndim == 1:
        return values + np.float32(1)
    return values


def name_of(name, family):
    own = {"pre_ff_layernorm.weight": "ffn_norm"} if family == "falcon_h1" else {}
    for end, to in (TENSORS | own).items():
        if name.endswith(end):
            return f"blk.{name.split('.')[2]}.{to}"
    module, _, part = name.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{part}"
    layer, _, module = re.sub(r"^(model\.layers|backbone\.layers|gpt_neox\.layers|h)\.", "", module).partition(".")
    return f"blk.{layer}.{(LAYER | OWN.get(family, {}))[module]}.{part}"


def by_layer(tensors):
    """The tensors of each layer, and those outside of layers, because all of a large model in f32 take too much memory; those of a
    multi-token prediction head are left out."""
    groups = {}
    for name, array in tensors.items():
        if name.startswith("mtp."):
            continue
        found = re.match(r"(model\.|backbone\.)?(gpt_neox\.)?(layers|h)\.\d+\.", name)
        groups.setdefault(found and found.group(), {})[name] = array
    return groups.values()


def changed(tensors, c):
    """(name, values) of the tensors in the file."""
    family = c["model_type"]
    yield from stacked(tensors)
    if family == "gpt_oss":
        yield from of_gpt_oss(tensors)
    if family == "deepseek_v3":
        yield from of_deepseek_v3(tensors, c)
    if family == "granitemoehybrid":
        yield from of_granite(tensors, c)
    if family == "qwen3_next":
        yield from of_qwen3_next(tensors, c)
    for name, values in sorted(tensors.items()):
        yield name_of(name, family), relaid(name, values, c)


def is_matrix(name, values):
    """Whether a tensor is quantized in files of block formats."""
    return values.ndim > 1 and name.endswith(".weight") and not re.search(r"norm|conv|gate_inp", name)


def convert(folder, kind="F32", later_layers=True):
    """The file of a folder, with matrices of type `kind`, a type of gguf_file.stored. With `later_layers`, families that predict more tokens
    have a layer for it, which is not valid."""
    c = checkpoint.config_of(folder)
    family = c["model_type"]
    architecture, keys = ARCHITECTURES[family]
    if later_layers and family == "qwen3_5_text":
        keys = keys | NEXTN
    if family == "nemotron_h" and has_experts(c):
        architecture += "_moe"
    file = gguf_file.File()
    file.key("general.architecture", STRING, architecture)
    if kind != "F32":
        file.key("general.quantization_version", U32, 2)
    values = {key: source(c) if callable(source) else c[source] for key, source in keys.items()}
    for key, value in values.items():
        if value is None:
            continue
        if isinstance(value, list):
            file.list(f"{architecture}.{key}", BOOL if isinstance(value[0], bool) else I32, value)
            continue
        type_ = {str: STRING, bool: BOOL, int: U32, float: F32}[type(value)]
        file.key(f"{architecture}.{key}", type_, value)

    def put(name, values):
        values = np.ascontiguousarray(values)
        stored, data, _ = gguf_file.stored(values, kind if is_matrix(name, values) else "F32")
        file.tensor(name, values.shape, stored, data)

    for group in by_layer(checkpoint.read(folder, mapped=True)):
        for name, numbers in changed({name: gguf_file.to_f32(array) for name, array in group.items()}, c):
            put(name, numbers)
    if family == "gemma4_text":
        for name, numbers in of_gemma4(c):
            put(name, numbers)
    if values.get("nextn_predict_layers"):
        for name, numbers in of_later_layer(values["block_count"] - 1):
            put(name, numbers)
    return file
