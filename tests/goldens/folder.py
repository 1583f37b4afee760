"""Random checkpoints and their folders, shared by the golden makers."""

from __future__ import annotations

import argparse
import json
import math
import pathlib

import numpy as np
import safetensors.numpy
import torch
import transformers

import reference

PROMPT = 40
GREEDY = 8
MUTANT_BOUND = 1e-3  # minimum change of the logits by a mistake (tests compare within 1e-5)
MARGIN = (
    1e-3  # minimum relative distance of the best two logits, so that ids do not depend on rounding
)
GATE_MARGIN = 1e-4


def is_norm(name):
    return "norm" in name


def random_weights(shapes, seed):
    """Deterministic f32 tensors: norm weights 1 + 0.2 N, biases 0.1 N, embedding 0.02 N, others N /
    sqrt(fan in).
    """
    rng = np.random.default_rng(seed)
    out = {}
    for name, shape in shapes.items():
        x = rng.standard_normal(shape, dtype=np.float32)
        if is_norm(name):
            x = 1 + np.float32(0.2) * x
        elif name.endswith(".bias"):
            x = np.float32(0.1) * x
        elif "embed" in name:
            x = np.float32(0.02) * x
        elif name.endswith("gate.weight"):
            x = x * np.float32(2 / math.sqrt(shape[-1]))
        else:
            x = x / np.float32(math.sqrt(shape[-1]))
        out[name] = np.ascontiguousarray(x, dtype=np.float32)
    return out


def prompt_ids(vocab, seed):
    return np.random.default_rng(seed + 1000).integers(3, vocab, PROMPT).tolist()


def greedy(logits_of, prompt):
    """The prompt's logits and GREEDY ids, each by a full prefill; and the minimum relative margin."""
    ids, worst, first = list(prompt), math.inf, None
    for _ in range(GREEDY):
        logits = logits_of(ids)
        first = logits if first is None else first
        best = torch.topk(logits[-1], 2).values
        worst = min(worst, float((best[0] - best[1]) / logits.abs().max()))
        ids.append(int(logits[-1].argmax()))
    return first, ids[len(prompt) :], worst


def difference(a, b):
    """max |a - b| / max |b|, used by all tests."""
    return float((a.double() - b.double()).abs().max() / b.double().abs().max())


def check(spec, weights, prompt, logits):
    """Compares a golden with the second implementation and its mutants; returns a report, or raises an exception."""
    torch_weights = {n: torch.from_numpy(v) for n, v in reference.rename(weights).items()}
    double = {n: v.double() for n, v in torch_weights.items()}
    ids, trace = torch.tensor(prompt), []
    report = {
        "against_f64": difference(logits, reference.forward(spec, double, ids, trace)),
        "mutants": {},
    }
    if report["against_f64"] > 2e-6:
        raise ValueError(f"the second implementation disagrees: {report}")
    if trace:
        report["gate_margin"] = min(float(m.min()) for _, m in trace)
    for name in reference.mutants(spec, torch_weights):
        spec.mutant = name
        report["mutants"][name] = difference(reference.forward(spec, double, ids), logits)
    spec.mutant = ""
    return report, trace


def acceptable(report, margin):
    """None, or the reason why another seed is needed."""
    weak = {n: d for n, d in report["mutants"].items() if d <= MUTANT_BOUND}
    if weak:
        return f"insensitive to {weak}"
    if margin < MARGIN:
        return f"margin {margin:.1e}"
    if report.get("gate_margin", 1) < GATE_MARGIN:
        return f"gate margin {report['gate_margin']:.1e}"
    return None


def write(root, name, config, weights, prompt, logits, ids, trace):
    path = pathlib.Path(root) / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    safetensors.numpy.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    (path / "model.safetensors").chmod(0o644)
    np.save(path / "golden.logits.npy", logits.numpy().astype("<f4"))
    (path / "golden.json").write_text(json.dumps({"prompt": prompt, "greedy": ids}) + "\n")
    if trace:
        np.save(path / "golden.experts.npy", np.stack([c.numpy().astype("<i4") for c, _ in trace]))
        np.save(
            path / "golden.gate_margin.npy", np.stack([m.numpy().astype("<f4") for _, m in trace])
        )


def produce(root, name, config, spec, shapes, load, first_seed, extra_weights=None, absent=()):
    """Try seeds until the checkpoint is sensitive and unambiguous, then write it. Returns its
    manifest entry.

    `load(config, weights)` returns a function from ids to logits [S, V] computed by the reference
    software. `extra_weights(weights)` may add redundant tensors (a tied head stored twice). Keys in
    `absent` are omitted from the written config.json.
    """
    reasons = []
    for seed in range(first_seed, first_seed + 50):
        weights = random_weights(shapes, seed)
        prompt = prompt_ids(config["vocab_size"], seed)
        stored = {**weights, **(extra_weights(weights) if extra_weights else {})}
        logits_of = load(config, stored)
        logits, ids, margin = greedy(logits_of, prompt)
        report, trace = check(spec, weights, prompt, logits)
        why = acceptable(report, margin)
        if why:
            reasons.append(why)
            continue
        written = {k: v for k, v in config.items() if k not in absent}
        write(root, name, written, stored, prompt, logits, ids, trace)
        entry = {"seed": seed, "tried": len(reasons) + 1, "greedy_margin": margin, **report}
        worst = min(entry["mutants"].items(), key=lambda m: m[1])
        print(
            f"{name}: seed {seed}, against f64 {entry['against_f64']:.1e}, weakest mutant {worst}"
        )
        return entry
    raise ValueError(f"{name}: no seed will do: {reasons[-5:]}")


def update_manifest(root, versions, entries):
    path = pathlib.Path(root) / "MANIFEST.json"
    manifest = json.loads(path.read_text()) if path.exists() else {}
    manifest.setdefault("versions", {}).update(versions)
    for name, entry in entries.items():
        manifest.setdefault("checkpoints", {})[name] = json.loads(
            json.dumps(entry), parse_float=lambda x: float(f"{float(x):.3g}")
        )
    manifest["checkpoints"] = dict(sorted(manifest["checkpoints"].items()))
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def command_line(description):
    """The options of a golden maker: the folder of all goldens, and the names of the wanted ones, none for all. One thread, no progress bars."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=pathlib.Path(__file__).parent)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return pathlib.Path(options.out), options.names


def extend_models(description, key, produce):
    """The command line of a script that adds files to models. `produce` has a function for each model's name, which takes its folder and
    returns what the manifest records under `key`."""
    root, names = command_line(description)
    manifest = json.loads((root / "MANIFEST.json").read_text())
    entries = {
        name: manifest["checkpoints"][name] | {key: function(root / "models" / name)}
        for name, function in produce.items()
        if not names or name in names
    }
    update_manifest(root, {"torch": torch.__version__, "transformers": transformers.__version__}, entries)
