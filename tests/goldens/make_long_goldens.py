#!/usr/bin/env python3
"""Goldens of models with recurrent or rolling states for texts that are longer than the rings of these states.

    make_long_goldens.py [--out DIR] [NAME...]

Adds files to the models created by make_family_goldens.py, computed in f32 by transformers:
`golden.long.json`, `golden.long.logits.npy`: a prompt of 136 ids with its logits, and 8 greedy ids, each by a full prefill. Position 128 reads a
matrix that was computed from the matrix before position 96, and so on; rings have 64 positions.
A golden is accepted if its ids do not depend on rounding, and if the logits after position 64 change by more than 1e-3 when the first 32 ids
are others: the states, and not only the last inputs, have an effect. Needs the packages of requirements.txt.
"""

import json

import numpy as np
import torch

import folder
from make_length_goldens import load

#: One model for each kind of state, without experts, whose selection depends on rounding in long texts.
NAMES = ["falcon-h1", "granite-hybrid-dense", "lfm2", "mamba2", "nemotron-h", "qwen3-5"]
LENGTH, OTHERS, SETTLED = 136, 32, 64


def attempt(path, seed):
    """The prompt, its logits, greedy ids, and a report; None if the golden is not accepted."""
    vocab = json.loads((path / "config.json").read_text())["vocab_size"]
    rng = np.random.default_rng(seed)
    prompt, others = rng.integers(3, vocab, LENGTH).tolist(), rng.integers(3, vocab, OTHERS).tolist()
    model = load(path)

    def logits_of(ids):
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0]

    logits, ids, margin = folder.greedy(logits_of, prompt)
    moved = (logits_of(others + prompt[OTHERS:]) - logits).abs().amax(1)[SETTLED:] / logits.abs().max()
    report = {"seed": seed, "greedy_margin": margin, "moved": float(moved.max())}
    accepted = margin > folder.MARGIN and float(moved.max()) > folder.MUTANT_BOUND
    return report, (prompt, ids, logits) if accepted else None


def produce(path):
    for seed in range(7000, 7100):
        report, kept = attempt(path, seed)
        print(path.name, report, flush=True)
        if not kept:
            continue
        prompt, ids, logits = kept
        (path / "golden.long.json").write_text(json.dumps({"prompt": prompt, "greedy": ids}) + "\n")
        np.save(path / "golden.long.logits.npy", logits.numpy().astype("<f4"))
        return report
    raise ValueError(f"{path.name}: no seed will do")


if __name__ == "__main__":
    folder.extend_models(__doc__, "long", {name: produce for name in NAMES})
