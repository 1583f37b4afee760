#!/usr/bin/env python3
"""Writes the outlier twin of a model folder: the same function with outlier channels.

    outlier_twin.py SOURCE TARGET [--share 0.01] [--factor 64] [--seed 0]

A share of the weights of every norm before matmuls is multiplied by the factor, and the columns of the following matrices are divided
by it; likewise the rows of every `up` and the columns of its `down`. Large models have such channels, small ones do not. The factor is
a power of two, so that nothing is rounded: the twin's f32 logits are equal. Only norm weights of Gemma, which are stored minus 1, are
rounded to f32.
"""

import argparse
import re
import sys

import numpy as np

import checkpoint


def pairs(names):
    """(tensors whose rows are multiplied, tensors whose columns are divided), for all places of the model."""
    readers = {}
    for name in names:
        if match := re.fullmatch(r"(model\.layers\.\d+\.)self_attn\.[qkv]_proj\.weight", name):
            readers.setdefault(match[1] + "input_layernorm.weight", []).append(name)
        if match := re.fullmatch(r"(model\.layers\.\d+\.)mlp\.(.*\.)?(gate_proj|up_proj|gate)\.weight", name):
            norms = [match[1] + f"{norm}_layernorm.weight" for norm in ("pre_feedforward", "post_attention")]
            readers.setdefault(next(norm for norm in norms if norm in names), []).append(name)
        if match := re.fullmatch(r"(.*\.)down_proj\.weight", name):
            readers[match[1] + "up_proj.weight"] = [name]
        if name == "lm_head.weight":
            readers["model.norm.weight"] = [name]
    return sorted(readers.items())


def scaled(tensor, factors):
    """The tensor times powers of two, in its own type: bits of bf16 are u2."""
    if tensor.dtype == np.uint16:
        product = (tensor.astype("u4") << 16).view("<f4") * factors
        return (product.astype("<f4").view("u4") >> 16).astype("<u2")
    return (tensor.astype("<f4") * factors).astype("<f4")


def offset_of(config):
    """The number that a model adds to its norm weights."""
    return 1.0 if config["model_type"].startswith("gemma") else 0.0


def add_outliers(tensors, share=0.01, factor=64.0, seed=0, offset=0.0):
    """Changes the tensors of a folder in place; effective norm weights are the tensors plus `offset`."""
    rng = np.random.default_rng(seed)
    found = pairs(tensors)
    if not found:
        sys.exit("no norm, up or down of a name that is known here")
    for source, readers in found:
        rows = tensors[source].shape[0]
        factors = np.ones(rows, "<f4")
        factors[rng.choice(rows, max(1, round(share * rows)), replace=False)] = factor
        if tensors[source].ndim == 1 and offset:
            tensors[source] = ((tensors[source] + offset) * factors - offset).astype("<f4")
        else:
            tensors[source] = scaled(tensors[source], factors.reshape(-1, *[1] * (tensors[source].ndim - 1)))
        for reader in readers:
            tensors[reader] = scaled(tensors[reader], 1 / factors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--factor", type=float, default=64.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    offset = offset_of(checkpoint.config_of(args.source))
    checkpoint.edited(args.source, args.target,
                      tensors=lambda tensors: add_outliers(tensors, args.share, args.factor, args.seed, offset))


if __name__ == "__main__":
    main()
