"""The table of make_family_goldens.py: a small model per family with all of the family's features enabled."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Callable

import torch
import transformers


def softmax_margin(_module, _inputs, output):
    """For a router that returns logits (or probabilities) first and the chosen experts last."""
    scores = output[0].float()
    if scores.min() < 0 or not torch.allclose(scores.sum(-1), torch.ones(len(scores))):
        scores = scores.softmax(-1)
    k = output[-1].shape[-1]
    ordered = scores.sort(-1, descending=True).values
    return ordered[:, k - 1] - ordered[:, k]


@dataclasses.dataclass
class Case:
    model_type: str
    config: dict
    mutants: dict = dataclasses.field(default_factory=dict)  # changes of the config that must change the logits
    weight_offset: float = 0  # added to norm weights by the family
    older: Callable | None = None  # the config with older names
    strip_prefix: str = ""  # published files have tensors without it
    margin_of: Callable = softmax_margin
    # If transformers' class does not write the folder: from changes of the config to (model, config.json, tensors of the model)
    compose: Callable | None = None
    made_of: str = ""  # the model class, if model_type is not enough to name it
    without_effect: tuple = ()  # patterns of the names of tensors without effect
    first_margin: float = 0  # of the first row's experts, on which the states of all later rows depend
    in_f64: bool = True  # whether the class computes in f64, for comparison
    second: Callable | None = None  # an f64 implementation if the class has none: logits from a model and ids
    skipped_seeds: int = 0  # whose logits depend too much on the rounding of bf16 for the tests' bounds


SMALL = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "vocab_size": 64,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}
WINDOW = {"sliding_window": 12}
NO_WINDOW = {"window": {"sliding_window": None}}
THETA = {"theta": {"rope_parameters": {"rope_theta": 500.0}}}
EPS = {"eps": {"rms_norm_eps": 1e-2}}
LAYER_EPS = {"eps": {"layer_norm_eps": 1e-2}}


def older(config):
    """transformers 4's names of rope and of the type."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    part = rope.pop("partial_rotary_factor", None)
    if part is not None:
        config["partial_rotary_factor"] = part
    if rope["rope_type"] != "default":
        config["rope_scaling"] = rope
    config["torch_dtype"] = config.pop("dtype")
    return config


def older_gemma3(config):
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["full_attention"].pop("rope_theta")
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    config["rope_scaling"] = rope["full_attention"]
    config["sliding_window_pattern"] = 3
    del config["layer_types"]
    config["torch_dtype"] = config.pop("dtype")
    return config


def older_lfm2(config):
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["rope_theta"]
    config["full_attn_idxs"] = [i for i, t in enumerate(config.pop("layer_types")) if t == "full_attention"]
    config["block_ff_dim"] = config.pop("intermediate_size")
    config["tie_embedding"] = config.pop("tie_word_embeddings")
    config["torch_dtype"] = config.pop("dtype")
    return config


MAMBA2 = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_heads": 6,
    "head_dim": 8,
    "state_size": 10,
    "n_groups": 2,
    "vocab_size": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}


MAMBA = {
    "mamba_n_heads": 6,
    "mamba_d_head": 8,
    "mamba_d_state": 10,
    "mamba_n_groups": 2,
}
MULTIPLIERS = {
    "embedding_multiplier": 7.0,
    "residual_multiplier": 0.3,
    "attention_multiplier": 0.25,
    "logits_scaling": 3.0,
}


def older_hybrid(config):
    config["time_step_limit"] = [0.0, float("inf")]
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["rope_theta"]
    config["torch_dtype"] = config.pop("dtype")
    return config


def older_granite_hybrid(config):
    """As published: other names of layer types."""
    config["layer_types"] = ["attention" if t == "full_attention" else "mamba" for t in config["layer_types"]]
    config["normalization_function"] = "rmsnorm"
    config["init_method"] = "mup"
    return older_hybrid(config)


def older_mamba2(config):
    """transformers 4 writes the limit of the time steps as Python's json does, and a norm that it always applies."""
    config["time_step_limit"] = [0.0, float("inf")]
    config["rms_norm"] = True
    config["norm_before_gate"] = False
    config["torch_dtype"] = config.pop("dtype")
    return config


def in_f64_throughout(model, prompt):
    """The logits of a class that casts to f32 within its layers, in f64 without these casts."""
    to, as_float = torch.Tensor.to, torch.Tensor.float

    def wide(value):
        return torch.float64 if value is torch.float32 else value

    torch.Tensor.float = lambda x: x.double()
    torch.Tensor.to = lambda x, *types, **named: to(x, *map(wide, types), **{k: wide(v) for k, v in named.items()})
    try:
        with torch.no_grad():
            logits = copy.deepcopy(model).double()(torch.tensor([prompt]), use_cache=False).logits[0]
    finally:
        torch.Tensor.to, torch.Tensor.float = to, as_float
    assert logits.dtype == torch.float64
    return logits


DELTA = {
    "num_hidden_layers": 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    # The output of a head is normalized even if it is tiny: a large eps limits the amplification of rounding errors.
    "rms_norm_eps": 0.1,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 6,
    "linear_value_head_dim": 5,
}
EXPERTS = {
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 12,
}


def older_qwen3_next(config):
    """As published: a rule instead of layer_types."""
    del config["layer_types"]
    config["full_attention_interval"] = 2
    config["use_sliding_window"] = False
    config = older(config)
    config["rope_scaling"] = None
    return config


FALCON_ONES = {
    "lm_head_multiplier": 1.0,
    "embedding_multiplier": 1.0,
    "mlp_multipliers": [1.0, 1.0],
    "key_multiplier": 1.0,
    "attention_in_multiplier": 1.0,
    "attention_out_multiplier": 1.0,
    "ssm_multipliers": [1.0] * 5,
    "ssm_in_multiplier": 1.0,
    "ssm_out_multiplier": 1.0,
}
FALCON = {
    "num_hidden_layers": 2,
    "mamba_d_ssm": 48,
    "lm_head_multiplier": 0.4,
    "embedding_multiplier": 5.0,
    "mlp_multipliers": [0.9, 0.3],
    "key_multiplier": 0.4,
    "attention_in_multiplier": 1.3,
    "attention_out_multiplier": 0.8,
    "ssm_multipliers": [0.4, 0.3, 0.2, 0.5, 0.35],
    "ssm_in_multiplier": 1.2,
    "ssm_out_multiplier": 0.6,
}
WITHOUT_INNER = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
TWO_LAYERS = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}


def published_qwen3_5(config):
    """With the keys that published files have and transformers does not read."""
    return config | {"attn_output_gate": True, "full_attention_interval": 2, "mamba_ssm_dtype": "float32",
                     "mlp_only_layers": [], "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}


def text_of_vision_model(kind, sizes):
    """A case of a checkpoint with a vision encoder and a multi-token prediction module; the golden is that of its text part."""
    vision = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1, "patch_size": 2, "temporal_patch_size": 1,
              "in_channels": 1, "out_hidden_size": sizes["hidden_size"], "num_position_embeddings": 4, "spatial_merge_size": 1}

    def compose(changes):
        config = getattr(transformers, kind + "Config")(
            text_config=sizes | changes, vision_config=vision, tie_word_embeddings=True)
        config.text_config._experts_implementation = "eager"
        config._attn_implementation = config.text_config._attn_implementation = "eager"
        model = getattr(transformers, kind + "ForConditionalGeneration")(config)
        written = json.loads(config.to_json_string()) | {"architectures": [kind + "ForConditionalGeneration"]}

        def tensors(made):
            return {n: v for n, v in made.state_dict().items() if n != "lm_head.weight"} | {
                "mtp.fc.weight": torch.ones(2, 2)}

        return model, written, tensors

    return compose


def older_gpt_neox(config):
    rope = config.pop("rope_parameters")
    config["rotary_emb_base"] = rope["rope_theta"]
    config["rotary_pct"] = rope["partial_rotary_factor"]
    config["torch_dtype"] = config.pop("dtype")
    return config


def group_margin(module, inputs, _output):
    """For DeepSeek's routers: the margin of the choice of groups or of experts, whichever is less."""
    x = inputs[0].reshape(-1, inputs[0].shape[-1]).float()
    logits = x @ module.weight.T.float()
    correction = getattr(module, "e_score_correction_bias", None)
    scores = logits.softmax(-1) if correction is None else logits.sigmoid() + correction
    clear = torch.full((len(x),), 1.0)
    if getattr(module, "topk_method", "") != "greedy":
        members = scores.view(len(x), module.num_group, -1)
        best = members.topk(1 if correction is None else 2, -1).values.sum(-1)
        ordered = best.sort(-1, descending=True).values
        kept = module.topk_group
        if kept < module.num_group:
            clear = ordered[:, kept - 1] - ordered[:, kept]
        inside = torch.zeros_like(best).scatter_(1, best.topk(kept, -1).indices, 1).bool()
        scores = members.masked_fill(~inside[..., None], -1e9).view(len(x), -1)
    ordered = scores.sort(-1, descending=True).values
    return torch.minimum(clear, ordered[:, module.top_k - 1] - ordered[:, module.top_k])


def corrected_margin(module, inputs, output):
    """For a router that chooses by sigmoids plus a correction bias."""
    scores = output[0].float().sigmoid() + inputs[1]
    ordered = scores.sort(-1, descending=True).values
    return ordered[:, module.top_k - 1] - ordered[:, module.top_k]


LATENT = {
    "kv_lora_rank": 12,
    "q_lora_rank": 10,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "moe_intermediate_size": 8,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 3,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 100.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 4.0,
    "beta_slow": 0.5,
    "mscale": 0.7,
    "mscale_all_dim": 0.9,
}

GPT_OSS = SMALL | WINDOW | {
    "head_dim": 10,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "intermediate_size": 20,
    "swiglu_limit": 0.8,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 100.0,
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "beta_fast": 4.0,
        "beta_slow": 0.5,
        "truncate": False,
    },
}


def older_gpt_oss(config):
    config["rope_theta"] = config["rope_parameters"].pop("rope_theta")
    config["rope_scaling"] = config.pop("rope_parameters")
    config["initial_context_length"] = config["rope_scaling"]["original_max_position_embeddings"]
    config["experts_per_token"] = config["num_experts_per_tok"]
    return config


def gpt_oss_in_blocks(changes):
    """As published: the experts in blocks of 32 4-bit numbers with a common power of two."""
    sizes = GPT_OSS | {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2} | changes
    config = transformers.GptOssConfig(**{k: v for k, v in sizes.items() if k != "pad_token_id"})
    config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    written = config.to_diff_dict() | {
        "architectures": ["GptOssForCausalLM"],
        "dtype": "bfloat16",
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
    }
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

    def tensors(made):
        """Rounds the experts of `made` to their stored values."""
        found = {}
        for name, value in made.state_dict().items():
            if not name.endswith(("gate_up_proj", "down_proj")) or ".experts." not in name:
                found[name] = value
                continue
            blocks = value.transpose(1, 2).unflatten(-1, (-1, 32))
            exponents = blocks.abs().amax(-1).log2().floor() - 2
            nearest = (blocks / exponents.exp2()[..., None]).unsqueeze(-1).sub(numbers).abs().argmin(-1)
            value.copy_((numbers[nearest] * exponents.exp2()[..., None]).flatten(-2).transpose(1, 2))
            found[name + "_blocks"] = (nearest[..., 0::2] | nearest[..., 1::2] << 4).to(torch.uint8)
            found[name + "_scales"] = (exponents + 127).to(torch.uint8)
        return found

    return model, written, tensors


NEMOTRON = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "mamba_num_heads": 6,
    "mamba_head_dim": 8,
    "ssm_state_size": 10,
    "n_groups": 2,
    "moe_intermediate_size": 8,
    "moe_shared_expert_intermediate_size": 12,
    # transformers applies the limit to prompts only; the others do not apply it.
    "time_step_min": 1e-30,
    "vocab_size": 64,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}


def older_nemotron(config):
    """As published: a letter for each layer."""
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    config["hybrid_override_pattern"] = "".join(letters[kind] for kind in config.pop("layers_block_type"))
    config["num_hidden_layers"] = len(config["hybrid_override_pattern"])
    config["time_step_limit"] = [0.0, float("inf")]
    config["torch_dtype"] = config.pop("dtype")
    return config


GEMMA = SMALL | {"head_dim": 16, "num_key_value_heads": 1, "hidden_size": 24}
# Scores are not divided by the root of the head size: small heads limit how much they amplify rounding errors of angles.
GEMMA4 = SMALL | WINDOW | {
    "head_dim": 4,
    "global_head_dim": 8,
    "rms_norm_eps": 5e-2,
    "intermediate_size": 20,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 64,
    "final_logit_softcapping": 1.5,
    "tie_word_embeddings": True,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 50.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    },
}
GEMMA4_KEYS_AS_VALUES = {
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
}
GEMMA4_MUTANTS = {
    "theta": {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}},
    "local theta": {"rope_parameters": {"sliding_attention": {"rope_theta": 10.0}}},
    "share": {"rope_parameters": {"full_attention": {"partial_rotary_factor": 1.0}}},
    "factor": {"rope_parameters": {"full_attention": {"factor": 4.0}}},
    "window": {"sliding_window": 5},
    "logits": {"final_logit_softcapping": None},
    "eps": {"rms_norm_eps": 1e-4},
}


def older_gemma4(config):
    """As published: keys of all layers without a window instead of sizes of single layers."""
    overrides = config.pop("per_layer_config")
    sizes = overrides[max(overrides)]
    config["global_head_dim"] = sizes["head_dim"]
    config["num_global_key_value_heads"] = sizes.get("num_key_value_heads")
    config["torch_dtype"] = config.pop("dtype")
    return config


def gemma4_of_vision_model(changes):
    """A checkpoint with a vision encoder; the golden is that of its text part."""
    vision = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
              "head_dim": 8, "patch_size": 2, "position_embedding_size": 4, "pooling_kernel_size": 1}
    sizes = GEMMA4 | GEMMA4_KEYS_AS_VALUES | {
        "num_attention_heads": 6, "use_bidirectional_attention": "vision", "attention_bias": True, "pad_token_id": 0}
    config = transformers.Gemma4Config(text_config=sizes | changes, vision_config=vision, audio_config=None)
    config.text_config._experts_implementation = "eager"
    config._attn_implementation = config.text_config._attn_implementation = "eager"
    model = transformers.Gemma4ForConditionalGeneration(config)
    written = json.loads(config.to_json_string()) | {"architectures": ["Gemma4ForConditionalGeneration"]}
    return model, written, lambda made: {n: v for n, v in made.state_dict().items() if n != "lm_head.weight"}

CASES = {
    "mistral": Case(
        "mistral",
        SMALL | WINDOW | {"head_dim": 10, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        NO_WINDOW | THETA | EPS,
        older=older,
    ),
    "qwen2": Case(
        "qwen2",
        SMALL | WINDOW | {"use_sliding_window": True, "max_window_layers": 1, "tie_word_embeddings": True},
        {"full": {"layer_types": ["full_attention"] * 3}} | THETA | EPS,
        older=older,
    ),
    "phi3": Case(
        "phi3",
        SMALL
        | WINDOW
        | {
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75},
        },
        NO_WINDOW | THETA | EPS,
    ),
    "olmo2": Case("olmo2", SMALL | {"attention_bias": True, "rms_norm_eps": 1e-6}, THETA | EPS, older=older),
    "granite": Case(
        "granite",
        SMALL
        | {
            "embedding_multiplier": 7.0,
            "residual_multiplier": 0.3,
            "attention_multiplier": 0.25,
            "logits_scaling": 3.0,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
        {
            "embedding": {"embedding_multiplier": 1.0},
            "residual": {"residual_multiplier": 1.0},
            "attention": {"attention_multiplier": 1.0},
            "logits": {"logits_scaling": 1.0},
        }
        | THETA
        | EPS,
        older=older,
    ),
    "gemma": Case("gemma", GEMMA, THETA | EPS | {"gelu": {"hidden_act": "silu"}}, weight_offset=1, older=older),
    "gemma2": Case(
        "gemma2",
        GEMMA
        | WINDOW
        | {
            "query_pre_attn_scalar": 9,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 1.5,
        },
        {
            "scalar": {"query_pre_attn_scalar": 16},
            "scores": {"attn_logit_softcapping": None},
            "logits": {"final_logit_softcapping": None},
            "full": {"layer_types": ["full_attention"] * 3},
        }
        | THETA
        | EPS,
        weight_offset=1,
        older=older,
    ),
    "gemma3-text": Case(
        "gemma3_text",
        GEMMA
        | WINDOW
        | {
            "num_hidden_layers": 4,
            "query_pre_attn_scalar": 9,
            "final_logit_softcapping": 1.5,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 2000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            },
        },
        {
            "scalar": {"query_pre_attn_scalar": 16},
            "logits": {"final_logit_softcapping": None},
            "full": {"layer_types": ["full_attention"] * 4},
            "theta": {"rope_parameters": {"full_attention": {"rope_theta": 500.0}}},
            "local theta": {"rope_parameters": {"sliding_attention": {"rope_theta": 500.0}}},
            "factor": {"rope_parameters": {"full_attention": {"factor": 1.0}}},
        }
        | EPS,
        weight_offset=1,
        older=older_gemma3,
    ),
    "mixtral": Case(
        "mixtral",
        SMALL
        | WINDOW
        | {"head_dim": 10, "num_hidden_layers": 2, "num_local_experts": 5, "num_experts_per_tok": 2,
           "intermediate_size": 20},
        NO_WINDOW | THETA | EPS,
        older=older,
    ),
    "qwen2-moe": Case(
        "qwen2_moe",
        SMALL
        | {
            "num_hidden_layers": 4,
            "intermediate_size": 24,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 20,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "norm_topk_prob": False,
            "qkv_bias": True,
        },
        THETA | EPS | {"normalize": {"norm_topk_prob": True}},
        older=older,
    ),
    "glm4": Case("glm4", SMALL | {"head_dim": 12, "pad_token_id": 0}, THETA | EPS, older=older),
    "cohere": Case(
        "cohere",
        SMALL | {"use_qk_norm": True, "logit_scale": 0.25, "attention_bias": True},
        THETA | LAYER_EPS | {"logits": {"logit_scale": 0.5}},
        older=older,
    ),
    "stablelm": Case(
        "stablelm",
        SMALL
        | {"hidden_size": 48, "num_hidden_layers": 2, "use_qkv_bias": True, "qk_layernorm": True,
           "intermediate_size": 24},
        THETA | LAYER_EPS,
        older=older,
    ),
    "stablelm-parallel": Case(
        "stablelm",
        SMALL
        | {"hidden_size": 48, "num_hidden_layers": 2, "use_parallel_residual": True, "intermediate_size": 24,
           "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
        THETA | LAYER_EPS,
    ),
    "starcoder2": Case(
        "starcoder2",
        SMALL | WINDOW,
        NO_WINDOW | THETA | {"eps": {"norm_epsilon": 1e-2}, "gelu": {"hidden_act": "relu"}},
        older=older,
    ),
    "gpt-neox": Case(
        "gpt_neox",
        {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
        | {"hidden_size": 48, "intermediate_size": 28, "num_hidden_layers": 2},
        THETA | LAYER_EPS | {"parallel": {"use_parallel_residual": False}},
        older=older_gpt_neox,
    ),
    "gpt2": Case(
        "gpt2",
        {
            "n_embd": 24,
            "n_layer": 3,
            "n_head": 3,
            "n_positions": 64,
            "vocab_size": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {"eps": {"layer_norm_epsilon": 1e-2}, "gelu": {"activation_function": "relu"}},
        strip_prefix="transformer.",
    ),
    "phi3-longrope": Case(
        "phi3",
        SMALL
        | {
            "num_hidden_layers": 2,
            "original_max_position_embeddings": 64,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0, 1.5, 2.0, 4.0],
                "long_factor": [2.0, 3.0, 4.0, 8.0],
                "original_max_position_embeddings": 64,
            },
        },
        {"factors": {"rope_parameters": {"short_factor": [1.0, 1.0, 1.0, 1.0]}},
         "attention": {"rope_parameters": {"attention_factor": 1.0}}},
    ),
    "llama-rope-dynamic": Case(
        "llama",
        SMALL | {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}},
        THETA,
        older=older,
    ),
    "deepseek-v2": Case(
        "deepseek_v2",
        SMALL
        | LATENT
        | {"n_group": 2, "topk_group": 1, "topk_method": "group_limited_greedy", "n_shared_experts": 2,
           "routed_scaling_factor": 1.7, "rope_parameters": YARN, "attention_bias": True},
        {"greedy": {"topk_method": "greedy"}, "scaling": {"routed_scaling_factor": 1.0},
         "mscale": {"rope_parameters": {"mscale_all_dim": 0.0}}},
        margin_of=group_margin,
        older=older,
    ),
    "deepseek-v2-lite": Case(
        "deepseek_v2",
        SMALL | LATENT | {"q_lora_rank": None, "n_shared_experts": 1, "num_hidden_layers": 2},
        THETA,
        margin_of=group_margin,
    ),
    "deepseek-v3": Case(
        "deepseek_v3",
        SMALL
        | LATENT
        | {"n_group": 2, "topk_group": 1, "n_shared_experts": 1, "routed_scaling_factor": 1.7,
           "rope_parameters": YARN, "num_mtp_layers": 0},
        {"scaling": {"routed_scaling_factor": 1.0}, "groups": {"topk_group": 2},
         "normalize": {"norm_topk_prob": False}, "interleave": {"rope_interleave": False}},
        margin_of=group_margin,
        older=older,
    ),
    "bloom": Case(
        "bloom",
        {"hidden_size": 24, "n_layer": 3, "n_head": 3, "vocab_size": 64, "bos_token_id": 1, "eos_token_id": 2},
        {"eps": {"layer_norm_epsilon": 1e-2}},
        strip_prefix="transformer.",
    ),
    "xglm": Case(
        "xglm",
        {"d_model": 24, "num_layers": 3, "attention_heads": 3, "ffn_dim": 40, "vocab_size": 64,
         "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None},
        {"relu": {"activation_function": "relu"}, "scale": {"scale_embedding": False}},
        in_f64=False,
        # Without rope it adds the same number to all scores of a row.
        without_effect=("model.layers.*.self_attn.k_proj.bias",),
    ),
    "gpt-oss": Case(
        "gpt_oss",
        GPT_OSS,
        {"limit": {"swiglu_limit": 7.0}, "alpha": {"swiglu_alpha": 1.0},
         "truncate": {"rope_parameters": {"truncate": True}},
         "full": {"layer_types": ["full_attention"] * 3}}
        | THETA
        | EPS,
        older=older_gpt_oss,
    ),
    "gpt-oss-mxfp4": Case("gpt_oss", {}, compose=gpt_oss_in_blocks, made_of="GptOssForCausalLM, rounded experts"),
    "qwen3-window": Case(
        "qwen3",
        SMALL | WINDOW | {"head_dim": 10, "use_sliding_window": True, "max_window_layers": 1, "num_hidden_layers": 2,
                          "tie_word_embeddings": True},
        {"full": {"layer_types": ["full_attention"] * 2}},
        older=older,
    ),
    "gpt-neox-sequential": Case(
        "gpt_neox",
        {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
        | {"use_parallel_residual": False, "attention_bias": False, "intermediate_size": 28,
           "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}},
        THETA | LAYER_EPS | {"parallel": {"use_parallel_residual": True}},
        older=older_gpt_neox,
    ),
    "xglm-padding": Case(
        "xglm",
        {"d_model": 24, "num_layers": 2, "attention_heads": 3, "ffn_dim": 40, "vocab_size": 64,
         "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 7,
         "activation_function": "relu2"},
        {"padding": {"pad_token_id": 1}, "relu": {"activation_function": "relu"}},
        in_f64=False,
        # Without rope it adds the same number to all scores of a row.
        without_effect=("model.layers.*.self_attn.k_proj.bias",),
    ),
    "gpt2-layer-scales": Case(
        "gpt2",
        {
            "n_embd": 24,
            "n_layer": 3,
            "n_head": 3,
            "n_positions": 64,
            "vocab_size": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "activation_function": "quick_gelu",
            "scale_attn_weights": False,
            "scale_attn_by_inverse_layer_idx": True,
            "reorder_and_upcast_attn": True,
        },
        {"layers": {"scale_attn_by_inverse_layer_idx": False}, "weights": {"scale_attn_weights": True},
         "gelu": {"activation_function": "gelu"}},
        strip_prefix="transformer.",
        in_f64=False,
    ),
    "mixtral-relu2": Case(
        "mixtral",
        SMALL
        | {"head_dim": 10, "num_hidden_layers": 2, "num_local_experts": 3, "num_experts_per_tok": 2,
           "intermediate_size": 20, "hidden_act": "relu2"},
        {"relu": {"hidden_act": "relu"}},
    ),
    "qwen3-moe-dense": Case(
        "qwen3_moe",
        SMALL
        | {"head_dim": 10, "num_hidden_layers": 2, "num_experts": 0, "num_experts_per_tok": 2,
           "moe_intermediate_size": 8, "hidden_act": "quick_gelu"},
        {"gelu": {"hidden_act": "gelu"}},
    ),
    "deepseek-v2-biases": Case(
        "deepseek_v2",
        SMALL
        | LATENT
        | {"n_shared_experts": 1, "num_hidden_layers": 2, "mlp_bias": True, "norm_topk_prob": True},
        THETA,
        margin_of=group_margin,
    ),
    "lfm2": Case(
        "lfm2",
        {key: value for key, value in SMALL.items() if key != "pad_token_id"}
        | {
            "num_hidden_layers": 4,
            "layer_types": ["conv", "full_attention", "conv", "full_attention"],
            "conv_L_cache": 4,
            "conv_bias": True,
            "intermediate_size": 61,
            "block_ffn_dim_multiplier": 1.1,
            "block_multiple_of": 8,
        },
        THETA | {"eps": {"norm_eps": 1e-2}},
        older=older_lfm2,
    ),
    "lfm2-moe": Case(
        "lfm2_moe",
        SMALL
        | {
            "num_hidden_layers": 4,
            "layer_types": ["conv", "conv", "full_attention", "conv"],
            "num_dense_layers": 1,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 8,
            "routed_scaling_factor": 1.7,
        },
        THETA
        | {"eps": {"norm_eps": 1e-2}, "scaling": {"routed_scaling_factor": 1.0}, "normalize": {"norm_topk_prob": False}},
        margin_of=corrected_margin,
        older=older,
    ),
    "mamba2": Case(
        "mamba2",
        MAMBA2 | {"use_bias": True},
        {"eps": {"layer_norm_epsilon": 1e-2}, "limit": {"time_step_limit": (0.0, 0.1)}},
        older=older_mamba2,
    ),
    "mamba2-tied": Case(
        "mamba2",
        MAMBA2 | {"n_groups": 1, "use_conv_bias": False, "conv_kernel": 3, "tie_word_embeddings": True},
        {"eps": {"layer_norm_epsilon": 1e-2}},
    ),
    "bamba": Case(
        "bamba",
        SMALL | MAMBA | {"attn_layer_indices": [1], "attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True},
        THETA | EPS | {"limit": {"time_step_limit": (0.0, 0.1)}},
        older=older_hybrid,
    ),
    "granite-hybrid": Case(
        "granitemoehybrid",
        SMALL
        | MAMBA
        | MULTIPLIERS
        | {
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "position_embedding_type": "rope",
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "intermediate_size": 8,
            "shared_intermediate_size": 12,
            "attention_bias": True,
            "tie_word_embeddings": True,
        },
        {"embedding": {"embedding_multiplier": 1.0}, "residual": {"residual_multiplier": 1.0},
         "attention": {"attention_multiplier": 1.0}, "logits": {"logits_scaling": 1.0},
         "positions": {"position_embedding_type": None}}
        | THETA
        | EPS,
        older=older_granite_hybrid,
    ),
    "granite-hybrid-dense": Case(
        "granitemoehybrid",
        SMALL
        | MAMBA
        | MULTIPLIERS
        | {
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "position_embedding_type": "nope",
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 28,
            "mamba_conv_bias": False,
        },
        {"positions": {"position_embedding_type": "rope"}} | EPS,
    ),
    "qwen3-next": Case(
        "qwen3_next",
        SMALL | DELTA | EXPERTS | {"attention_bias": True, "mlp_only_layers": [2], "intermediate_size": 20},
        THETA | EPS | {"normalize": {"norm_topk_prob": False}, "rotated": {"rope_parameters": {"partial_rotary_factor": 0.5}}},
        weight_offset=1,
        first_margin=0.01,
        second=in_f64_throughout,
        older=older_qwen3_next,
    ),
    "qwen3-5": Case(
        "qwen3_5_text",
        SMALL | DELTA | {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                                             "mrope_section": [2, 1, 1], "mrope_interleaved": True}},
        THETA | EPS,
        weight_offset=1,
        older=published_qwen3_5,
        second=in_f64_throughout,
    ),
    "qwen3-5-moe": Case(
        "qwen3_5_moe_text",
        WITHOUT_INNER | DELTA | EXPERTS,
        THETA | EPS,
        weight_offset=1,
        first_margin=0.01,
        second=in_f64_throughout,
    ),
    "qwen3-5-vision": Case(
        "qwen3_5",
        {},
        THETA | EPS,
        weight_offset=1,
        compose=text_of_vision_model("Qwen3_5", SMALL | DELTA | TWO_LAYERS),
        without_effect=("model.visual.*",),
        second=in_f64_throughout,
    ),
    "qwen3-5-moe-vision": Case(
        "qwen3_5_moe",
        {},
        THETA | EPS,
        weight_offset=1,
        compose=text_of_vision_model("Qwen3_5Moe", WITHOUT_INNER | DELTA | EXPERTS | TWO_LAYERS),
        without_effect=("model.visual.*",),
        first_margin=0.01,
        second=in_f64_throughout,
    ),
    "falcon-h1": Case(
        "falcon_h1",
        SMALL | MAMBA | FALCON,
        {name: {name: value} for name, value in FALCON_ONES.items()} | THETA,
    ),
    "falcon-h1-norm": Case(
        "falcon_h1",
        SMALL | MAMBA | {"num_hidden_layers": 2, "mamba_d_ssm": None, "mamba_rms_norm": True, "mamba_norm_before_gate": True,
                         "mamba_proj_bias": True, "projectors_bias": True, "mlp_bias": True, "attention_bias": True,
                         "mamba_conv_bias": False, "tie_word_embeddings": True, "ssm_multipliers": [0.5, 0.7, 0.7, 0.7, 2.0]},
        {"order": {"mamba_norm_before_gate": False}} | EPS,
    ),
    "nemotron-h": Case(
        "nemotron_h",
        NEMOTRON | {"layers_block_type": ["linear_attention", "mlp", "linear_attention", "full_attention", "mlp"]},
        {"eps": {"layer_norm_epsilon": 1e-2}},
        older=older_nemotron,
    ),
    "nemotron-h-moe": Case(
        "nemotron_h",
        NEMOTRON
        | {
            "layers_block_type": ["linear_attention", "moe", "full_attention", "moe"],
            "n_routed_experts": 6,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "routed_scaling_factor": 1.7,
            "use_bias": True,
            "mlp_bias": True,
            "use_conv_bias": False,
        },
        {"scaling": {"routed_scaling_factor": 1.0}, "groups": {"topk_group": 2}, "normalize": {"norm_topk_prob": False}},
        margin_of=group_margin,
        first_margin=0.01,
    ),
    "nemotron-h-latent": Case(
        "nemotron_h",
        NEMOTRON
        | {
            "layers_block_type": ["full_attention", "moe", "moe", "linear_attention"],
            "n_routed_experts": 5,
            "num_experts_per_tok": 2,
            "moe_latent_size": 10,
        },
        {"eps": {"layer_norm_epsilon": 1e-2}},
        margin_of=group_margin,
        first_margin=0.01,
        older=older_nemotron,
    ),
    "gemma4-text": Case(
        "gemma4_text",
        GEMMA4 | GEMMA4_KEYS_AS_VALUES | {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2},
        GEMMA4_MUTANTS,
        second=in_f64_throughout,
        older=older_gemma4,
    ),
    "gemma4-shared": Case(
        "gemma4_text",
        GEMMA4
        | {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 2,
           "use_double_wide_mlp": True, "hidden_size_per_layer_input": 10},
        GEMMA4_MUTANTS,
        second=in_f64_throughout,
        skipped_seeds=20,
        older=older_gemma4,
    ),
    "gemma4-moe": Case(
        "gemma4_text",
        GEMMA4
        | GEMMA4_KEYS_AS_VALUES
        | {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "enable_moe_block": True, "num_experts": 4,
           "top_k_experts": 2, "moe_intermediate_size": 8},
        GEMMA4_MUTANTS,
        first_margin=0.01,
        second=in_f64_throughout,
        older=older_gemma4,
    ),
    "gemma4-vision": Case(
        "gemma4",
        {},
        {"eps": {"rms_norm_eps": 1e-4}},
        compose=gemma4_of_vision_model,
        made_of="Gemma4ForConditionalGeneration",
        without_effect=("model.vision_tower.*", "model.embed_vision.*"),
        second=in_f64_throughout,
    ),
}
