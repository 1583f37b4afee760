"""MiniMind in plain torch, small enough to train on one thread: generation 3 dense, generation 2
with experts.

Built from the keys of config.json; parameter names are those of the published checkpoints. Shapes:
B sequences, S positions, C hidden, H query heads, G key/value heads, D head size, I inner size, E
experts.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def rotate(x, cos, sin):
    """Half pairing: element i rotates with i + D/2. x [B, heads, S, D], cos and sin [S, D/2]."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, self.heads, self.groups = (
            c["hidden_size"],
            c["num_attention_heads"],
            c["num_key_value_heads"],
        )
        self.size = c.get("head_dim", hidden // self.heads)
        self.q_proj = nn.Linear(hidden, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(hidden, self.groups * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, self.groups * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.normed = "head_dim" in c  # distinguishes generation 3 from 2
        if self.normed:
            self.q_norm = RMSNorm(self.size, c["rms_norm_eps"])
            self.k_norm = RMSNorm(self.size, c["rms_norm_eps"])

    def forward(self, x, cos, sin):
        def split(y, heads):  # [B, S, heads * D] -> [B, heads, S, D]
            return y.unflatten(-1, (heads, self.size)).transpose(1, 2)

        q, k = split(self.q_proj(x), self.heads), split(self.k_proj(x), self.groups)
        v = split(self.v_proj(x), self.groups)
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """The top k of E experts plus the shared ones. `balance` is the load-balancing loss."""

    def __init__(self, c):
        super().__init__()
        hidden, inner = c["hidden_size"], c["intermediate_size"]
        self.k = c["num_experts_per_tok"]
        self.gate = nn.Linear(hidden, c["n_routed_experts"], bias=False)
        self.experts = nn.ModuleList(
            FeedForward(hidden, inner) for _ in range(c["n_routed_experts"])
        )
        self.shared_experts = nn.ModuleList(
            FeedForward(hidden, inner) for _ in range(c["n_shared_experts"])
        )
        self.balance = 0.0

    def forward(self, x):
        rows = x.flatten(0, -2)
        scores = self.gate(rows).softmax(-1)
        weight, chosen = scores.topk(self.k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        y = sum(expert(rows) for expert in self.shared_experts)
        for i, expert in enumerate(self.experts):
            row, slot = (chosen == i).nonzero(as_tuple=True)
            y = y.index_add(0, row, expert(rows[row]) * weight[row, slot, None])
        load = F.one_hot(chosen, scores.shape[-1]).float().mean((0, 1))
        self.balance = (load * scores.mean(0)).sum() * scores.shape[-1]
        return y.view_as(x)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = (
            Experts(c)
            if c.get("use_moe")
            else FeedForward(c["hidden_size"], c["intermediate_size"])
        )

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class MiniMind(nn.Module):
    """ids [B, S] -> logits [B, S, V]; the output projection is the embedding."""

    def __init__(self, c):
        super().__init__()
        self.config, self.model = c, Decoder(c)
        self.size = c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.5 / math.sqrt(parameter.shape[1]))

    def hidden(self, ids):
        frequency = self.config["rope_theta"] ** (
            -torch.arange(0, self.size, 2).float() / self.size
        )
        angle = torch.outer(torch.arange(ids.shape[1]).float(), frequency)
        cos, sin, x = angle.cos(), angle.sin(), self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.model.norm(x)

    def forward(self, ids):
        return self.hidden(ids) @ self.model.embed_tokens.weight.T

    def balance(self):
        return sum(
            layer.mlp.balance for layer in self.model.layers if isinstance(layer.mlp, Experts)
        )
