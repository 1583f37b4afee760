#!/usr/bin/env python3
"""Creates the inputs for comparisons with peers: models of published shapes with random weights, programs and GGUF files.

    shapes.py OUT --mica MICA [--only PATTERN] [--weights int8,int4,bf16] [--peer NAME LLAMA_BENCH]... [--max-seq 8448] [--delete-folders]

For each shape, OUT/NAME is its folder, OUT/NAME-{int8,int4,bf16} are the programs, OUT/NAME-{Q8_0,Q4_0,BF16}.gguf the same
weights for the peers, with meaningless tokens. OUT/cases.json is the input of `compare.py --config`. Existing files are not created
again. Llama 3.2 1B takes 10 GB on disk and as much memory while it is quantized, Qwen3.5 4B in int8 and int4 16 GB on disk without its
folder of 8 GB, and 10 GB of memory.

Hybrids have a variant NAME-period with the layers of one period and as large a part of the vocabulary: every kind of work has the same
share of its time as in the whole model, and a long text takes less time to read. NAME-narrow has all layers, few and small heads, and
an even smaller vocabulary.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import checkpoint  # noqa: E402
import gguf_families  # noqa: E402
import gguf_file  # noqa: E402

LLAMA = {"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "bos_token_id": 1,
         "eos_token_id": 2, "max_position_embeddings": 32768, "rope_theta": 1e6}
MINIMIND = {**LLAMA, "vocab_size": 6400, "num_attention_heads": 8, "num_key_value_heads": 2}
SHAPES = {
    "llama-3.2-1b": {**LLAMA, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 128256,
                     "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "rope_theta": 5e5},
    "qwen2.5-0.5b": {**LLAMA, "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
                     "vocab_size": 151936, "num_attention_heads": 14, "num_key_value_heads": 2, "rms_norm_eps": 1e-6},
    "minimind-26m": {**MINIMIND, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8},
    "minimind-104m": {**MINIMIND, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 16},
    "minimind-moe": {**MINIMIND, "model_type": "qwen3_moe", "hidden_size": 640, "intermediate_size": 1728, "head_dim": 80,
                     "num_hidden_layers": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 1728,
                     "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []},
}


def layer_types(period, attention, periods):
    """Layers in periods of which one has attention."""
    return ["full_attention" if i == attention else "linear_attention" for i in range(period)] * periods


#: Hybrids: the shape, the number of its periods, and sizes of the narrow variant.
HYBRIDS = {
    "qwen3.5-4b": ({"model_type": "qwen3_5_text", "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
                    "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 262144, "hidden_size": 2560, "intermediate_size": 9216,
                    "num_hidden_layers": 32, "vocab_size": 248320, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
                    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
                    "linear_value_head_dim": 128, "layer_types": layer_types(4, 3, 8), "mtp_num_hidden_layers": 1,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25,
                                        "mrope_interleaved": True, "mrope_section": [11, 11, 10]}}, 8,
                   {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 1, "num_key_value_heads": 1,
                    "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16}),
    "granite-4.0-h-micro": ({"model_type": "granitemoehybrid", "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
                             "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 131072, "hidden_size": 2048,
                             "intermediate_size": 8192, "shared_intermediate_size": 8192, "num_hidden_layers": 40, "vocab_size": 100352,
                             "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 0, "num_experts_per_tok": 0,
                             "attention_multiplier": 0.015625, "embedding_multiplier": 12.0, "logits_scaling": 8.0,
                             "residual_multiplier": 0.22, "position_embedding_type": "nope", "mamba_conv_bias": True, "mamba_d_conv": 4,
                             "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 64,
                             "mamba_proj_bias": False, "layer_types": layer_types(10, 5, 4),
                             "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, 4,
                            {"hidden_size": 64, "intermediate_size": 128, "shared_intermediate_size": 128, "num_attention_heads": 1,
                             "num_key_value_heads": 1, "mamba_d_state": 16, "mamba_n_heads": 2}),
}


def variants(shape, periods, narrow):
    layers, vocabulary = shape["num_hidden_layers"] // periods, shape["vocab_size"] // periods
    yield "", shape
    yield "-period", {**shape, "num_hidden_layers": layers, "layer_types": shape["layer_types"][:layers], "vocab_size": vocabulary}
    yield "-narrow", {**shape, **narrow, "vocab_size": 1024}


SHAPES |= {name + suffix: shape for name, hybrid in HYBRIDS.items() for suffix, shape in variants(*hybrid)}
#: The peers' formats with as many bits as Mica's weights.
STORED = {"int8": "Q8_0", "int4": "Q4_0", "bf16": "BF16"}


def once(path, make):
    """Creates a file or a folder under a temporary name first, so that an incomplete one is never used."""
    if not path.exists():
        part = path.with_name(path.name + ".part")
        make(part)
        part.rename(path)
    return path


def folder_of(config):
    def make(part):
        part.mkdir(parents=True, exist_ok=True)
        checkpoint.random(str(part), config, "bf16")
    return make


def gguf_of(folder, kind):
    def make(part):
        config = checkpoint.config_of(folder)
        if config["model_type"] in gguf_families.ARCHITECTURES:
            file = gguf_families.convert(folder, kind, later_layers=False)
        else:
            file = gguf_file.Converter(folder, kind, keep_numbers=False).convert()
        size = config["vocab_size"]
        file.key("tokenizer.ggml.model", gguf_file.STRING, "gpt2")
        file.key("tokenizer.ggml.pre", gguf_file.STRING, "gpt-2")
        file.list("tokenizer.ggml.tokens", gguf_file.STRING, ["t", "0", *(f"t{i}" for i in range(size - 2))])
        file.list("tokenizer.ggml.token_type", gguf_file.I32, [1] * size)
        file.list("tokenizer.ggml.merges", gguf_file.STRING, ["t 0"])
        file.key("tokenizer.ggml.bos_token_id", gguf_file.U32, 1)
        file.key("tokenizer.ggml.eos_token_id", gguf_file.U32, 2)
        file.write(part)
    return make


def folder(name, out):
    return once(out / name, folder_of(SHAPES[name]))


def program(name, weights, out, args, suffix="", options=()):
    """A program of a shape and a format, compiled with more options; its name then has a suffix."""
    def compiled(part):
        subprocess.run([args.mica, "compile", folder(name, out), "--weights", weights, "--max-seq", str(args.max_seq), *options, "-o", part],
                       check=True)
    return once(out / f"{name}{suffix}-{weights}", compiled)


def case_of(name, weights, out, args, with_file=True):
    """The case of a shape and a format; creates all of its files, or the program only."""
    made = [program(name, weights, out, args)]
    if with_file:
        kind = STORED[weights]
        made.append(once(out / f"{name}-{kind}.gguf", lambda part: gguf_of(folder(name, out), kind)(part)))
    print(*made, flush=True)
    case = {"name": made[0].name, "mica": str(made[0]), "models": {peer: str(made[-1]) for peer, _ in args.peer}}
    if args.published:
        case["quality"] = {"published": args.published, "format": f"`--weights {weights}`"}
    return case


def cases_of(name, out, args):
    cases = [case_of(name, weights, out, args) for weights in args.weights]
    if args.delete_folders:
        shutil.rmtree(out / name, ignore_errors=True)
    return cases


def config_of(cases, peers):
    """The input of `compare.py --config`."""
    return {"peers": {name: {"bench": bench} for name, bench in peers}, "cases": cases}


def add_published(parser):
    parser.add_argument("--published", nargs="+", default=[], metavar="MODEL",
                        help="quote the KL divergences of these models from docs/quality.json")


def add_options(parser):
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--peer", nargs=2, action="append", default=[], metavar=("NAME", "LLAMA_BENCH"))
    parser.add_argument("--weights", type=lambda text: text.split(","), default=list(STORED), help="of " + ",".join(STORED))
    add_published(parser)
    parser.add_argument("--delete-folders", action="store_true", help="delete each model's folder when its files have been created")


def out_of(args, parser):
    if unknown := set(args.weights) - set(STORED):
        parser.error(f"--weights {','.join(sorted(unknown))}: choose from {','.join(STORED)}")
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    return out


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--only", default="", help="a pattern of the shapes to make: " + ", ".join(SHAPES))
    parser.add_argument("--max-seq", type=int, default=8448, help="positions that programs hold (default 8448)")
    args = parser.parse_args(argv)
    names = [name for name in SHAPES if re.search(args.only, name)]
    if not names:
        parser.error(f"--only {args.only}: no such shape")
    out = out_of(args, parser)
    cases = [case for name in names for case in cases_of(name, out, args)]
    (out / "cases.json").write_text(json.dumps(config_of(cases, args.peer), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
