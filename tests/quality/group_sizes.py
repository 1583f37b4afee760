#!/usr/bin/env python3
"""Simulates weights or activations in groups of other sizes than Mica's: the KL divergence that rounding causes.

    group_sizes.py MODEL [--activations] [--text FILE] [--groups 32,64,128] [--threads 2]

MODEL is a folder of train.py or a GGUF file. Prints a row for 8 bits, and for 4 bits with an offset per group. Each matrix is rounded to
the nearest levels, with an f16 scale (and offset) per group, except the embedding, which stays as it is; everything is computed in f32.
With --activations, the inputs of linear layers are rounded to 8 bits with an f32 scale per group instead. The text is that of measure.py:
the first 20,000 bytes, in windows of 512 of which the second half counts. Needs the packages of tests/goldens/requirements.txt, for
GGUF files accelerate as well.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F
import train
import transformers


def rounded(matrix, bits, group):
    """The matrix [rows, columns] as stored in `bits` bits per number: signed levels, or for fewer than 8 bits unsigned ones with an offset."""
    groups = matrix.reshape(-1, group)
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    if bits == 8:
        low, scale = torch.zeros_like(low), torch.maximum(-low, high) / 127
    else:
        scale = (high - low) / (2 ** bits - 1)
    low, scale = low.half().float(), scale.half().float()
    levels = ((groups - low) / scale.clamp(min=1e-30)).round().clamp(*((-127, 127) if bits == 8 else (0, 2 ** bits - 1)))
    return (levels * scale + low).reshape(matrix.shape)


@torch.no_grad()
def log_probabilities(net, ids):
    """Those of the second half of each window, as in train.perplexity."""
    return torch.cat([F.log_softmax(net(window[None])[0, train.WINDOW // 2:-1].double(), -1) for window in train.windows(ids)])


def load(path):
    """(function from ids [1, n] to logits [1, n, vocabulary], its module, function from a text to ids) of a folder or a GGUF file."""
    if path.suffix != ".gguf":
        net, tokenizer = train.load(path)
        return net, net, lambda text: tokenizer.encode(text).ids
    source = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    net = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).eval()
    return lambda ids: net(ids).logits, net, transformers.AutoTokenizer.from_pretrained(**source).encode


def divergence(net, ids, reference):
    """The mean KL divergence and its standard error."""
    found = log_probabilities(net, ids)
    kls = (reference.exp() * (reference - found)).sum(-1)
    return kls.mean().item(), (kls.std() / len(kls) ** 0.5).item()


def with_rounded_weights(net, matrices, ids, reference, bits, group):
    """The divergence; `matrices`: the parameters of the net and their exact values."""
    for weight, exact in matrices:
        weight.data = rounded(exact, bits, group)
    return divergence(net, ids, reference)


def with_rounded_activations(net, module, ids, reference, group):
    """The divergence if the inputs of all linear layers have 8 bits."""
    def round_inputs(_layer, inputs):
        groups = inputs[0].reshape(-1, group)
        scale = (groups.abs().amax(1, keepdim=True) / 127).clamp(min=1e-30)
        return ((groups / scale).round() * scale).reshape(inputs[0].shape), *inputs[1:]

    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    hooks = [layer.register_forward_pre_hook(round_inputs) for layer in layers]
    found = divergence(net, ids, reference)
    for hook in hooks:
        hook.remove()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--activations", action="store_true")
    parser.add_argument("--text", type=pathlib.Path, default=train.ROOT / "../shared/text/alice29.txt")
    parser.add_argument("--groups", type=lambda text: list(map(int, text.split(","))), default=[32, 64, 128])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    net, module, encode = load(args.model)
    rows = {weight.shape[1] for weight in module.parameters() if weight.dim() == 2}
    if indivisible := [group for group in args.groups if any(row % group for row in rows)]:
        parser.error(f"--groups: rows of {sorted(rows)} elements have no whole groups of {indivisible}")
    ids = torch.tensor(encode(args.text.read_bytes()[:train.HELD_OUT].decode("utf-8", "ignore")))
    reference = log_probabilities(net, ids)
    matrices = [(weight, weight.data) for name, weight in module.named_parameters() if weight.dim() == 2 and "embed" not in name]
    print("| bits | " + " | ".join(f"groups of {group}" for group in args.groups) + " |")
    print("|---" * (len(args.groups) + 1) + "|")

    def row(title, figures):
        print(f"| {title} | {' | '.join('{:.2g} ± {:.1g}'.format(*found) for found in figures)} |", flush=True)

    if args.activations:
        row("8, activations", [with_rounded_activations(net, module, ids, reference, group) for group in args.groups])
        return
    for bits in (8, 4):
        row(bits, [with_rounded_weights(net, matrices, ids, reference, bits, group) for group in args.groups])


if __name__ == "__main__":
    main()
