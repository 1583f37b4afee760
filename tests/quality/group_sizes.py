#!/usr/bin/env python3
"""Simulates weights in groups of other sizes than those of Mica's formats: the KL divergence that rounding causes in a model of train.py.

    group_sizes.py FOLDER [--text FILE] [--groups 32,64,128] [--threads 2]

Prints a row for 8 bits, and for 4 bits with an offset per group. Each matrix is rounded to the nearest levels, with an f16 scale (and
offset) per group, except the embedding, which stays as it is; everything is computed in f32. The text is that of measure.py: the first
20,000 bytes, in windows of 512 of which the second half counts. Needs the packages of tests/goldens/requirements.txt.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F
import train


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


def divergence(net, matrices, ids, reference, bits, group):
    """The mean KL divergence and its standard error with rounded weights; `matrices`: the parameters of the net and their exact values."""
    for weight, exact in matrices:
        weight.data = rounded(exact, bits, group)
    found = log_probabilities(net, ids)
    kls = (reference.exp() * (reference - found)).sum(-1)
    return kls.mean().item(), (kls.std() / len(kls) ** 0.5).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, default=train.ROOT / "../shared/text/alice29.txt")
    parser.add_argument("--groups", type=lambda text: list(map(int, text.split(","))), default=[32, 64, 128])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    net, tokenizer = train.load(args.folder)
    ids = torch.tensor(tokenizer.encode(args.text.read_bytes()[:train.HELD_OUT].decode("utf-8", "ignore")).ids)
    reference = log_probabilities(net, ids)
    matrices = [(weight, weight.data) for name, weight in net.named_parameters() if weight.dim() == 2 and "embed" not in name]
    print("| bits | " + " | ".join(f"groups of {group}" for group in args.groups) + " |")
    print("|---" * (len(args.groups) + 1) + "|")
    for bits in (8, 4):
        cells = ["{:.2g} ± {:.1g}".format(*divergence(net, matrices, ids, reference, bits, group)) for group in args.groups]
        print(f"| {bits} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
