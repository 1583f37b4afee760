"""The table of make_family_goldens.py: a small model per family with everything switched on that the family has."""

from __future__ import annotations

import dataclasses
from typing import Callable

import torch


def softmax_margin(_module, _inputs, output):
    """Of a router that returns its logits (or its probabilities) first and the chosen experts last."""
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
    mutants: dict = dataclasses.field(default_factory=dict)  # changes of the config that must show
    gain_offset: float = 0  # what the family adds to its gains
    older: Callable | None = None  # the config in older names
    strip_prefix: str = ""  # published files have tensors without it
    margin_of: Callable = softmax_margin


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
    """transformers 4's names of the rope and of the type."""
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


def older_gpt_neox(config):
    rope = config.pop("rope_parameters")
    config["rotary_emb_base"] = rope["rope_theta"]
    config["rotary_pct"] = rope["partial_rotary_factor"]
    config["torch_dtype"] = config.pop("dtype")
    return config


GEMMA = SMALL | {"head_dim": 16, "num_key_value_heads": 1, "hidden_size": 24}

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
    "gemma": Case("gemma", GEMMA, THETA | EPS | {"gelu": {"hidden_act": "silu"}}, gain_offset=1, older=older),
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
        gain_offset=1,
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
        gain_offset=1,
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
        THETA | EPS | {"normalise": {"norm_topk_prob": True}},
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
}
