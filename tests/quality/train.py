#!/usr/bin/env python3
"""Train small models in f32 on a text, and write them as folders and GGUF files: a Llama with its outlier twin, or a hybrid.

    train.py OUT [--hybrid [NAME]] [--text FILE] [--steps 300] [--threads 2] [--check]

Writes OUT/trained and OUT/outlier (Hugging Face folders) and OUT/trained.gguf and OUT/outlier.gguf, all in f32; with --hybrid, OUT/NAME and
OUT/NAME.gguf: one layer with attention beside three of Qwen3.5's gated delta nets (hybrid), of Granite 4's Mamba 2 (granite4) or of LFM2's
short convolutions (lfm2). All rows of matrices are multiples of 256, so that every block format of GGUF can hold every matrix. The first
20,000 bytes of the text are held out. --check prints the perplexities of existing models.

The twin is the same function: in one layer, one weight of each norm (and one row of `up`) is multiplied by a power of two,
and the matching columns of the matrices that read it are divided by it. The channel and the factor are chosen such that
the rows that enter the products of this layer have a median max/rms of at least 20.

Text, tokenizer, order and initial weights follow from the seed; another version of torch or number of threads rounds differently. Needs
the packages of tests/goldens/requirements.txt and runs on the CPU.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np
import safetensors.torch
import tokenizers
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/train"), str(ROOT / "tests/e2e")]
import checkpoint  # noqa: E402
import gguf_families  # noqa: E402
import gguf_file  # noqa: E402
import model as models  # noqa: E402
import outlier_twin  # noqa: E402

SEED = 20270101
HELD_OUT = 20000  # bytes at the beginning of the text
WINDOW, ROWS = 512, 4
NOISE = 0.1  # of the input ids are replaced by random ones, against overfitting
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LAYER, WANTED = 1, 20.0  # for the twin: the layer with outliers, and their median max/rms
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
SHARED_KEYS = ("hidden_act", "hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "bos_token_id", "eos_token_id",
               "torch_dtype")
SHARED = {key: CONFIG[key] for key in SHARED_KEYS} | {"num_hidden_layers": 4, "layer_types": ["linear_attention"] * 3 + ["full_attention"],
                                                      "tie_word_embeddings": True}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
HYBRIDS = {
    "hybrid": SHARED | {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "linear_num_key_heads": 4,
        "linear_num_value_heads": 8,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-6,
        "rope_parameters": ROPE | {"partial_rotary_factor": 0.25, "mrope_interleaved": True, "mrope_section": [6, 5, 5]},
    },
    "granite4": SHARED | {
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "model_type": "granitemoehybrid",
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "shared_intermediate_size": 1024,
        "position_embedding_type": "nope",
        "mamba_n_heads": 16,
        "mamba_d_head": 64,
        "mamba_d_state": 64,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_chunk_size": 64,
        "attention_multiplier": 0.125,
        "embedding_multiplier": 1.0,
        "residual_multiplier": 1.0,
        "logits_scaling": 1.0,
        "rms_norm_eps": 1e-5,
        "rope_parameters": ROPE,
    },
    "lfm2": {key: value for key, value in SHARED.items() if key != "hidden_act"} | {
        "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2",
        "layer_types": ["conv"] * 3 + ["full_attention"],
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "conv_L_cache": 3,
        "conv_bias": False,
        "intermediate_size": 1536,  # two thirds of it are the width
        "block_auto_adjust_ff_dim": True,
        "block_ffn_dim_multiplier": 1.0,
        "block_multiple_of": 256,
        "norm_eps": 1e-5,
        "rope_parameters": ROPE,
    },
}


class Hybrid(torch.nn.Module):
    """A model of HYBRIDS by transformers: ids [rows, positions] to logits."""

    def __init__(self, config):
        super().__init__()
        import transformers  # takes seconds
        [architecture] = config["architectures"]
        net = getattr(transformers, architecture)
        self.net = net(net.config_class(**config)).float()

    def forward(self, ids):
        return self.net(input_ids=ids, use_cache=False).logits

    def state_dict(self):  # pylint: disable=arguments-differ
        """Without the head, which is the embedding."""
        return {name: tensor for name, tensor in self.net.state_dict().items() if name != "lm_head.weight"}


def train_tokenizer(text):
    """Byte-level BPE, as GPT-2 splits text."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=CONFIG["vocab_size"], special_tokens=SPECIAL, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text], trainer)
    assert tokenizer.get_vocab_size() == CONFIG["vocab_size"], tokenizer.get_vocab_size()
    return tokenizer


def rate(step, steps, peak=2e-3):
    """A warm-up of 40 steps, then half a cosine."""
    return peak * min(1, (step + 1) / 40) * max(0.02, 0.5 * (1 + math.cos(math.pi * step / steps)))


def train(make, ids, held, steps):
    torch.manual_seed(SEED)
    net = make()
    print(f"{sum(p.numel() for p in net.parameters())} parameters, {len(ids)} ids", flush=True)
    matrices = [p for p in net.parameters() if p.dim() == 2]
    vectors = [p for p in net.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  betas=(0.9, 0.98))
    start = time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        begins = torch.randint(0, len(ids) - WINDOW, (ROWS,))
        window = torch.stack([ids[b:b + WINDOW + 1] for b in begins.tolist()])
        source, target = window[:, :-1].clone(), window[:, 1:]
        noisy = torch.rand(source.shape) < NOISE
        source[noisy] = torch.randint(len(SPECIAL), CONFIG["vocab_size"], (int(noisy.sum()),))
        loss = F.cross_entropy(net(source).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1}, {time.time() - start:.0f} s, loss {loss.item():.3f}, "
                  f"perplexity held out {perplexity(net, held):.2f}", flush=True)
    return net


def windows(ids, context=WINDOW):
    """The whole windows of a text."""
    return [ids[begin:begin + context] for begin in range(0, len(ids) - context + 1, context)]


@torch.no_grad()
def perplexity(net, ids, context=WINDOW):
    """The perplexity of the second half of each window, as in `mica eval`."""
    losses = []
    for window in windows(ids, context):
        losses.append(F.cross_entropy(net(window[None, :-1])[0, context // 2:], window[context // 2 + 1:], reduction="none"))
    return math.exp(torch.cat(losses).mean())


@torch.no_grad()
def entering_rows(net, ids, layer):
    """The inputs of the layer's matmuls: {name of the norm or up weight before a matmul: its input rows [positions, channels]}."""
    rows, hooks, prefix = {}, [], f"model.layers.{layer}."

    def keep(name):
        return lambda _, inputs: rows.setdefault(prefix + name, []).append(inputs[0].flatten(0, -2))

    block = net.model.layers[layer]
    for name, module in (("input_layernorm.weight", block.self_attn.q_proj),
                         ("post_attention_layernorm.weight", block.mlp.gate_proj),
                         ("mlp.up_proj.weight", block.mlp.down_proj)):
        hooks.append(module.register_forward_pre_hook(keep(name)))
    for begin in range(0, 8 * WINDOW, WINDOW):
        net(ids[None, begin:begin + WINDOW])
    for hook in hooks:
        hook.remove()
    return {name: torch.cat(parts).numpy() for name, parts in rows.items()}


def max_to_rms(rows):
    return float(np.median(np.abs(rows).max(1) / np.sqrt((rows.astype("f8") ** 2).mean(1))))


def outliers(rows):
    """(channel, factor, median max/rms): the smallest power of two that reaches WANTED, in the channel that is most often the maximum of
    its row."""
    relative = np.abs(rows) / np.sqrt((rows ** 2).mean(1, keepdims=True))
    channel = int(np.median(relative, 0).argmax())
    scaled = rows.copy()
    for exponent in range(1, 17):
        scaled[:, channel] = rows[:, channel] * 2 ** exponent
        if max_to_rms(scaled) >= WANTED:
            break
    return channel, 2.0 ** exponent, max_to_rms(scaled)


def add_outliers(tensors, net, ids):
    """Changes the tensors of a folder in place."""
    readers = dict(outlier_twin.pairs(tensors))
    for name, rows in entering_rows(net, ids, LAYER).items():
        channel, factor, reached = outliers(rows)
        print(f"{name}: channel {channel} times {factor:g}, median max/rms {max_to_rms(rows):.1f} -> {reached:.1f}")
        factors = np.ones(rows.shape[1], "<f4")
        factors[channel] = factor
        own = tensors[name]
        tensors[name] = outlier_twin.scaled(own, factors.reshape(-1, *[1] * (own.ndim - 1)))
        for reader in readers[name]:
            tensors[reader] = outlier_twin.scaled(tensors[reader], 1 / factors)


def write(folder, net, config, tokenizer):
    folder.mkdir(parents=True)
    safetensors.torch.save_file({n: t.detach().contiguous() for n, t in net.state_dict().items()},
                                folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {"config.json": config, "generation_config.json": {"bos_token_id": 1, "eos_token_id": 2},
             "tokenizer_config.json": {"add_bos_token": False, "add_eos_token": False, "add_prefix_space": False,
                                       "bos_token": SPECIAL[1], "eos_token": SPECIAL[2],
                                       "clean_up_tokenization_spaces": False, "tokenizer_class": "PreTrainedTokenizerFast"}}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def load(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    if config["model_type"] != CONFIG["model_type"]:
        net = Hybrid(config)
        net.net.load_state_dict(tensors, strict=False)  # the head is the embedding
    else:
        net = models.MiniMind(config)
        net.load_state_dict(tensors)
    return net.eval(), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def write_llamas(out, net, tokenizer, ids):
    """The trained model and its twin."""
    trained, twin = out / "trained", out / "outlier"
    write(trained, net, CONFIG, tokenizer)
    checkpoint.edited(trained, twin, tensors=lambda tensors: add_outliers(tensors, net, ids))
    for folder in (trained, twin):
        gguf_file.Converter(folder, "F32").convert().write(folder.with_name(folder.name + ".gguf"))


def write_hybrid(folder, net, tokenizer):
    write(folder, net, HYBRIDS[folder.name], tokenizer)
    file = gguf_families.convert(folder, later_layers=False)
    gguf_file.add_tokenizer(file, folder)
    file.write(folder.with_name(folder.name + ".gguf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--hybrid", metavar="NAME", choices=HYBRIDS, nargs="?", const="hybrid", help=f"of {', '.join(HYBRIDS)} (default: hybrid)")
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "../shared/text/alice29.txt")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    text = args.text.read_bytes()
    held, text = text[:HELD_OUT].decode("utf-8", "ignore"), text[HELD_OUT:].decode("utf-8", "ignore")
    if not args.check:
        tokenizer = train_tokenizer(text)
        ids = torch.tensor(tokenizer.encode(text).ids)
        make = (lambda: Hybrid(HYBRIDS[args.hybrid])) if args.hybrid else (lambda: models.MiniMind(CONFIG))
        net = train(make, ids, torch.tensor(tokenizer.encode(held).ids), args.steps).eval()
        if args.hybrid:
            write_hybrid(args.out / args.hybrid, net, tokenizer)
        else:
            write_llamas(args.out, net, tokenizer, ids)
    for folder in (args.out / name for name in ([args.hybrid] if args.hybrid else ["trained", "outlier"])):
        net, tokenizer = load(folder)
        ids = torch.tensor(tokenizer.encode(held).ids)
        counts = torch.bincount(ids, minlength=CONFIG["vocab_size"]).double() / len(ids)
        unigram = math.exp(-(counts[counts > 0] * counts[counts > 0].log()).sum())
        print(f"{folder}: perplexity {perplexity(net, ids):.4f} over {len(ids)} ids held out; of their frequencies alone "
              f"{unigram:.0f}")


if __name__ == "__main__":
    main()
