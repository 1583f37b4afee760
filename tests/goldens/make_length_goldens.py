#!/usr/bin/env python3
"""Goldens of rope with frequencies that depend on the sequence length: above the threshold, and across it.

    make_length_goldens.py [--out DIR] [NAME...]

Adds files to the models created by make_family_goldens.py, computed in f32 by transformers:
- `golden.above.json`, `golden.above.logits.npy`: a prompt of threshold + 8 ids with its logits, and 8 greedy ids, with cache;
- `golden.across.json`, `golden.across.logits.npy`: a prompt of threshold - 4 ids, 12 greedy ids, and the logits from which each was
  chosen. When the text becomes longer than the threshold, the cache is dropped and all ids are recomputed, as in transformers' own Phi-3;
  other steps use the cache.
A golden is accepted if its ids do not depend on rounding, and if the frequencies of short texts change all rows of `above`, and the rows
of `across` above the threshold, by more than 1e-3. Needs the packages of requirements.txt.
"""

import functools
import json

import numpy as np
import torch
import transformers

import folder

THRESHOLDS = {"llama-rope-dynamic": 128, "phi3-longrope": 64}
ABOVE, BEFORE = 8, 4
STEPS = {"above": 8, "across": 12}


def load(path, changes=None):
    """A new model each time: with dynamic scaling it keeps the frequencies of the longest text."""
    config = transformers.AutoConfig.from_pretrained(path)
    for key, value in (changes or {}).items():
        setattr(config, key, value)
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, config=config, attn_implementation="eager", dtype=torch.float32
    ).eval()


def decode(model, prompt, steps, threshold):
    """Logits of the prompt, ids and the logits from which each was chosen."""
    ids, cache, first, rows = list(prompt), None, None, []
    with torch.no_grad():
        for _ in range(steps):
            if len(ids) == threshold + 1:
                cache = None
            fed = ids if cache is None else ids[-1:]
            out = model(torch.tensor([fed]), past_key_values=cache, use_cache=True)
            first, cache = out.logits[0].clone() if first is None else first, out.past_key_values
            rows.append(out.logits[0, -1].clone())
            ids.append(int(rows[-1].argmax()))
    return first, ids[len(prompt) :], torch.stack(rows)


def scripted(model, prompt, ids):
    """The logits of the same ids without any crossing."""
    with torch.no_grad():
        return model(torch.tensor([prompt + ids[:-1]]), use_cache=False).logits[0, len(prompt) - 1 :]


def margin(rows):
    best = rows.topk(2).values
    return float(((best[:, 0] - best[:, 1]) / rows.abs().max()).min())


def attempt(path, threshold, seed):
    vocab = json.loads((path / "config.json").read_text())["vocab_size"]
    ids = np.random.default_rng(seed).integers(3, vocab, threshold + ABOVE).tolist()
    prompts = {"above": ids, "across": ids[: threshold - BEFORE]}
    plain = {"max_position_embeddings": 1 << 20} if "dynamic" in path.name else {}
    short = {"original_max_position_embeddings": 1 << 20} if "longrope" in path.name else {}
    report, kept = {"seed": seed}, {}
    for name, prompt in prompts.items():
        first, greedy, rows = decode(load(path), prompt, STEPS[name], threshold)
        other = load(path, plain)
        if short:
            # The attention factor is that of the published lengths.
            other.model.rotary_emb.config.rope_parameters.update(short)
        moved = (scripted(other, prompt, greedy) - rows).abs().amax(1) / rows.abs().max()
        after = moved if name == "above" else moved[BEFORE + 1 :]
        report[name] = {"greedy_margin": margin(rows), "moved": float(after.min())}
        if margin(rows) < folder.MARGIN or float(after.min()) <= folder.MUTANT_BOUND:
            return report, None
        kept[name] = (prompt, greedy, first if name == "above" else rows)
    return report, kept


def produce(path, threshold):
    for seed in range(5000, 5100):
        report, kept = attempt(path, threshold, seed)
        print(path.name, report, flush=True)
        if not kept:
            continue
        for name, (prompt, greedy, logits) in kept.items():
            (path / f"golden.{name}.json").write_text(json.dumps({"prompt": prompt, "greedy": greedy}) + "\n")
            np.save(path / f"golden.{name}.logits.npy", logits.numpy().astype("<f4"))
        return report
    raise ValueError(f"{path.name}: no seed will do")


if __name__ == "__main__":
    folder.extend_models(__doc__, "lengths", {name: functools.partial(produce, threshold=threshold) for name, threshold in THRESHOLDS.items()})
