#!/usr/bin/env python3
"""Goldens of the families that transformers supports: random weights, computed in f32 (eager attention).

    make_family_goldens.py [--out DIR] [NAME...]

`family_cases.py` is the table. The folder is written by transformers' `save_pretrained`. A golden is accepted if it is sensitive: each
change of the config in the table, and each type of tensor reset to neutral values (norm weights one, all else zero), changes the logits by
more than 1e-3; tests require 1e-5. Needs the packages of requirements.txt.
"""

import copy
import fnmatch
import json
import pathlib
import re
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

import family_cases
import folder

AGAINST_F64 = 2e-6


def offset_of(name, offset):
    """The family's weight_offset for this tensor: 0 for a gated norm."""
    return 0 if name.endswith("linear_attn.norm.weight") else offset


def randomize(name, shape, rng, offset):
    """Norm weights 1 + 0.2 N (0.2 N if weight_offset is 1), biases 0.1 N, embeddings 0.1 N, others N / sqrt(fan in). Mamba's
    A_log, dt_bias and D are N."""
    offset = offset_of(name, offset)
    x = rng.standard_normal(shape, dtype=np.float32)
    if name.endswith((".A_log", ".dt_bias", ".D")):
        return x
    if name.endswith("bias") or "sinks" in name:
        return np.float32(0.1 if name.endswith("bias") else 1) * x
    if len(shape) == 1 or "norm" in name or "ln_" in name:
        return np.float32(1 - offset) + np.float32(0.2) * x
    if any(word in name for word in ("embed", "wte", "wpe")) and "embed_out" not in name:
        return np.float32(0.1) * x
    transposed = any(word in name for word in ("c_attn", "attn.c_proj")) or name.endswith(".c_fc.weight^T")
    fan_in = shape[0] if transposed else shape[-1]
    return x / np.float32(np.sqrt(fan_in))


def load(path, config):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        path, config=config, attn_implementation="eager", experts_implementation="eager",
        dtype=torch.float32, output_loading_info=True
    )
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        raise ValueError(f"{path}: {wrong}")
    return model.eval()


def run(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].clone()


def changed(config, changes):
    config = copy.deepcopy(config)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(getattr(config, key, None), dict):
            nested = copy.deepcopy(getattr(config, key))
            for inner, part in value.items():
                nested[inner] = nested[inner] | part if isinstance(part, dict) else part
            value = nested
        setattr(config, key, value)
    return config


def kind_of(name):
    """A tensor's name without the indices of layers, experts and heads."""
    return re.sub(r"\.\d+\.", ".*.", re.sub(r"\.\d+\.", ".*.", name))


def tensors_of(model):
    """The parameters, the correction biases of gates, and the factors of layers."""
    buffers = ("correction_bias", "expert_bias", "layer_scalar")
    return list(model.named_parameters()) + [(n, b) for n, b in model.named_buffers() if n.endswith(buffers)]


def without(model, kind, offset):
    """The model with neutral values for tensors of a type: norm weights are one, all others zero."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for name, value in tensors_of(model):
            if kind_of(name) == kind:
                is_norm_weight = "norm" in name and name.endswith("weight") or value.dim() == 1 and not name.endswith(
                    ("bias", ".A_log", ".D"))
                value.fill_(1.0 - offset_of(name, offset) if is_norm_weight and "sinks" not in name else 0.0)
    return model


def margins(model, ids, margin_of):
    """[MoE layers, tokens]: the margin between the last chosen expert and the first one not chosen."""
    found = []
    hooks = [
        module.register_forward_hook(lambda m, inputs, output: found.append(margin_of(m, inputs, output)))
        for module in model.modules()
        if type(module).__name__.endswith(("Router", "Gate"))
    ]
    run(model, ids)
    for hook in hooks:
        hook.remove()
    return np.stack([m.numpy().astype("<f4") for m in found]) if found else None


def fill(model, seed, offset):
    """Random values for all tensors."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in sorted(tensors_of(model)):
            value.copy_(torch.from_numpy(randomize(name, tuple(value.shape), rng, offset)))


def published(case, seed, where):
    """(config.json, its model, a function from changes of the config to a model); writes the folder."""
    if case.compose:
        model, written, tensors = case.compose({})
        fill(model, seed, case.weight_offset)
        weights = {n: v.detach().contiguous().numpy() for n, v in tensors(model).items()}
        safetensors.numpy.save_file(weights, where / "model.safetensors", metadata={"format": "pt"})

        def with_changes(changes):
            other = case.compose(changes)[0]
            other.load_state_dict(model.state_dict())
            return other.eval()

        return written, model.eval(), with_changes
    config = transformers.CONFIG_MAPPING[case.model_type](**case.config)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager"
    ).eval()
    fill(model, seed, case.weight_offset)
    model.save_pretrained(where)
    written = json.loads((where / "config.json").read_text())
    config = transformers.AutoConfig.from_pretrained(where)
    return written, load(where, config), lambda changes: load(where, changed(config, changes))


def attempt(case, seed, where):
    """(report, files to keep) for a seed, or the reason why it is not suitable."""
    torch.manual_seed(seed)
    written, model, with_changes = published(case, seed, where)
    prompt = folder.prompt_ids(written.get("text_config", written)["vocab_size"], seed)
    logits, ids, margin = folder.greedy(lambda ids: run(model, ids), prompt)
    report = {"mutants": {}}
    if case.in_f64:
        in_f64 = case.second(model, prompt) if case.second else run(copy.deepcopy(model).double(), prompt)
        report["against_f64"] = folder.difference(logits, in_f64)
        if report["against_f64"] > AGAINST_F64:
            return f"badly conditioned: {report['against_f64']:.1e}", None
    for name, changes in case.mutants.items():
        report["mutants"][name] = folder.difference(run(with_changes(changes), prompt), logits)
    kinds = {kind_of(n) for n, _ in tensors_of(model)}
    for kind in sorted(kinds):
        if any(fnmatch.fnmatchcase(kind, pattern) for pattern in case.without_effect):
            continue
        report["mutants"]["no " + kind] = folder.difference(
            run(without(model, kind, case.weight_offset), prompt), logits
        )
    gate = margins(model, prompt, case.margin_of)
    if gate is not None:
        report["gate_margin"] = float(gate.min())
        if gate[:, 0].min() < case.first_margin:
            return f"first gate margin {gate[:, 0].min():.1e}", None
    why = folder.acceptable(report, margin)
    if why:
        return why, None
    return report | {"greedy_margin": margin}, (written, prompt, ids, logits, gate)


def produce(root, name, case, first_seed):
    reasons = []
    for seed in range(first_seed, first_seed + 60):
        with tempfile.TemporaryDirectory() as place:
            where = pathlib.Path(place)
            report, kept = attempt(case, seed, where)
            if kept is None:
                reasons.append(report)
                print(f"{name}: seed {seed}: {report}", flush=True)
                continue
            written, prompt, ids, logits, gate = kept
            weights = safetensors.numpy.load_file(where / "model.safetensors")
            if case.strip_prefix:
                weights = {n.removeprefix(case.strip_prefix): v for n, v in weights.items()}
            folder.write(root, name, written, weights, prompt, logits, ids, None)
        path = pathlib.Path(root) / name
        if gate is not None:
            np.save(path / "golden.gate_margin.npy", gate)
        if case.older:
            older = case.older(copy.deepcopy(written))
            (path / "config.other.json").write_text(json.dumps(older, indent=2) + "\n")
            check_older(path, prompt, logits)
        weakest = min(report["mutants"].items(), key=lambda m: m[1])
        print(f"{name}: seed {seed}, against f64 {report.get('against_f64')}, weakest {weakest}", flush=True)
        return {"seed": seed, "tried": len(reasons) + 1} | report
    raise ValueError(f"{name}: no seed will do: {reasons[-5:]}")


def check_older(path, prompt, logits):
    """config.other.json has the same meaning for transformers."""
    with tempfile.TemporaryDirectory() as place:
        where = pathlib.Path(place)
        (where / "config.json").write_text((path / "config.other.json").read_text())
        (where / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes())
        other = run(load(where, transformers.AutoConfig.from_pretrained(where)), prompt)
    if not torch.equal(other, logits):
        raise ValueError(f"{path}: the other names give other logits")


def main():
    (root, names), entries = folder.command_line(__doc__), {}
    for number, (name, case) in enumerate(family_cases.CASES.items()):
        if names and name not in names:
            continue
        entries[name] = produce(root / "models", name, case, 9000 + 100 * number + case.skipped_seeds)
        entries[name]["made_by"] = f"transformers {transformers.__version__}, {case.made_of or case.model_type}"
    folder.update_manifest(
        root, {"torch": torch.__version__, "transformers": transformers.__version__}, entries
    )


if __name__ == "__main__":
    main()
