#!/usr/bin/env python3
"""Goldens of a bundled model, computed by MiniMind's authors' code in f32 from the bf16 weights.

    make_bundled_goldens.py GIT FOLDER...

GIT as for make_minimind_goldens.py; each FOLDER is a bundled model. Writes FOLDER/golden.json and
FOLDER/golden.N.logits.npy: three prompts, their f32 logits [S, V] and 16 greedy ids (past the end
token, each by a full prefill), and token ids of some texts. Prompts are held-out ones whose 16
steps have clear margins.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import safetensors.torch
import tokenizers
import torch

import folder
import make_minimind_goldens as authors

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools" / "train"))
import model as training  # noqa: E402

STEPS, MARGIN = 16, 2e-3
TEXTS = [
    "Q: 99 + 1 = ?\nA:",
    "sort: z a\n->",
    " 007 ",
    "Grüße, 世界 🌍",
    "a\tb\r\n\r\nc  d",
    "It's 3:45 o'clock -- don't!",
    "<|im_start|>user\nhi<|im_end|>",
    "<|im_end",
    "",
    " ",
    "\u0000\u007f\u00a0\u200b",
    "naïve e\u0301 ﬁ",
]


def load(classes, path):
    config = json.loads((path / "config.json").read_text())
    weights = safetensors.torch.load_file(path / "model.safetensors")
    weights = {n: t.float().numpy() for n, t in weights.items()}
    generation = 3 if "head_dim" in config else 2
    own = training.MiniMind(config)
    own.load_state_dict({n: torch.from_numpy(w) for n, w in weights.items()})
    known = {k: v for k, v in config.items() if k not in ("architectures", "dtype", "torch_dtype")}
    return authors.loader(classes, generation)(known, weights), own.eval(), generation


def run(logits_of, prompt):
    """(logits of the prompt, greedy ids, smallest relative margin)"""
    ids, first, worst = list(prompt), None, 1.0
    for _ in range(STEPS):
        logits = logits_of(ids)
        first = logits if first is None else first
        best = torch.topk(logits[-1], 2).values
        worst = min(worst, float((best[0] - best[1]) / logits[-1].abs().max()))
        if worst < MARGIN:
            return None
        ids.append(int(logits[-1].argmax()))
    return first, ids[len(prompt) :], worst


def choose(path, logits_of):
    """Three prompts of different types, with their continuations."""
    chosen = {}
    for line in (path / "heldout.jsonl").read_text().splitlines():
        task = json.loads(line)
        if task["kind"] in chosen or task["kind"] == "count":
            continue
        found = run(logits_of, task["prompt_ids"])
        if found:
            chosen[task["kind"]] = (task, *found)
    return chosen


def lines(entries):
    return "[\n    " + ",\n    ".join(json.dumps(e) for e in entries) + "\n  ]"


def make(classes, path):
    logits_of, own, generation = load(classes, path)
    tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    chosen, entries = choose(path, logits_of), []
    for number, (task, logits, ids, margin) in enumerate(chosen.values()):
        with torch.no_grad():
            apart = folder.difference(own(torch.tensor([task["prompt_ids"]]))[0], logits)
        print(f"{path.name}: {task['kind']}, training code against the authors' {apart:.1e}")
        np.save(path / f"golden.{number}.logits.npy", logits.numpy().astype("<f4"))
        entries.append(
            {
                "text": task["prompt"],
                "prompt": task["prompt_ids"],
                "greedy": ids,
                "logits": f"golden.{number}.logits.npy",
                "margin": float(f"{margin:.3g}"),
            }
        )
    if len(entries) != 3:
        raise ValueError(f"{path}: only {len(entries)} prompts leave no doubt")
    texts = [{"text": t, "ids": tokenizer.encode(t).ids} for t in TEXTS]
    commit = authors.COMMITS[generation][:7]
    made_by = f"MiniMind generation {generation}, commit {commit}, torch {torch.__version__}"
    (path / "golden.json").write_text(
        '{\n  "made_by": '
        + json.dumps(made_by)
        + ',\n  "runs": '
        + lines(entries)
        + ',\n  "tokenizer": '
        + lines(texts)
        + "\n}\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("git")
    parser.add_argument("folder", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as where:
        classes = authors.import_authors_code(options.git, where)
        for path in options.folder:
            make(classes, path)


if __name__ == "__main__":
    main()
