#!/usr/bin/env python3
"""Creates the inputs for comparisons with peers: models of published shapes with random weights, programs and GGUF files.

    shapes.py OUT --mica MICA [--only PATTERN] [--peer NAME LLAMA_BENCH]... [--max-seq 8448]

For each shape, OUT/NAME is its folder, OUT/NAME-{int8,int4,bf16} are the programs, OUT/NAME-{Q8_0,Q4_0,BF16}.gguf the same
weights for the peers, with meaningless tokens. OUT/cases.json is the input of `compare.py --config`. Existing files are not created
again. The largest, Llama 3.2 1B, takes 10 GB on disk and as much memory while it is quantized.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import checkpoint  # noqa: E402
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
        file = gguf_file.Converter(folder, kind, keep_numbers=False).convert()
        size = checkpoint.config_of(folder)["vocab_size"]
        file.key("tokenizer.ggml.model", gguf_file.STRING, "gpt2")
        file.key("tokenizer.ggml.pre", gguf_file.STRING, "gpt-2")
        file.list("tokenizer.ggml.tokens", gguf_file.STRING, ["t", "0", *(f"t{i}" for i in range(size - 2))])
        file.list("tokenizer.ggml.token_type", gguf_file.I32, [1] * size)
        file.list("tokenizer.ggml.merges", gguf_file.STRING, ["t 0"])
        file.key("tokenizer.ggml.bos_token_id", gguf_file.U32, 1)
        file.key("tokenizer.ggml.eos_token_id", gguf_file.U32, 2)
        file.write(part)
    return make


def cases_of(name, out, args):
    """The cases of a shape; creates all of their files."""
    folder = once(out / name, folder_of(SHAPES[name]))
    for weights, kind in STORED.items():
        def compiled(part, weights=weights):
            subprocess.run([args.mica, "compile", folder, "--weights", weights, "--max-seq", str(args.max_seq), "-o", part],
                           check=True)
        program = once(out / f"{name}-{weights}", compiled)
        model = once(out / f"{name}-{kind}.gguf", gguf_of(folder, kind))
        print(program, model, flush=True)
        yield {"name": program.name, "mica": str(program), "models": {peer: str(model) for peer, _ in args.peer}}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--only", default="", help="a pattern of the shapes to make: " + ", ".join(SHAPES))
    parser.add_argument("--peer", nargs=2, action="append", default=[], metavar=("NAME", "LLAMA_BENCH"))
    parser.add_argument("--max-seq", type=int, default=8448, help="positions that programs hold (default 8448)")
    args = parser.parse_args(argv)
    names = [name for name in SHAPES if re.search(args.only, name)]
    if not names:
        parser.error(f"--only {args.only}: no such shape")
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    cases = [case for name in names for case in cases_of(name, out, args)]
    config = {"peers": {name: {"bench": bench} for name, bench in args.peer}, "cases": cases}
    (out / "cases.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
