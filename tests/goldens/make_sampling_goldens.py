#!/usr/bin/env python3
"""Allowed tokens and their probabilities for given logits, computed by transformers' logits processors.

    make_sampling_goldens.py

Writes tests/goldens/sampling.json. Every case goes through the processors that `generate` lists for its options, in
its order. Presence and frequency penalties are not among them: they follow the OpenAI API's reference (each counts the
tokens generated so far, not the prompt's) at vLLM's place, after the repetition penalty and before the temperature.
"""

import json
import pathlib
import random

import torch
import transformers
from transformers.generation import logits_process as p

OUT = pathlib.Path(__file__).resolve().parent / "sampling.json"
VOCABULARY = 48


def openai_penalties(scores, generated, options):
    counts = torch.bincount(torch.tensor(generated, dtype=torch.long), minlength=VOCABULARY).float()
    return scores - options.get("frequency_penalty", 0) * counts - options.get("presence_penalty", 0) * (counts > 0)


class Model(transformers.GenerationMixin):
    """The part of a model that `generate` uses to list the processors for given options."""
    config = transformers.GPT2Config()


def distribution(logits, prompt, generated, options):
    ids = torch.tensor([prompt + generated])
    scores = torch.tensor([logits])
    given = {key: value for key, value in options.items() if key not in ("presence_penalty", "frequency_penalty", "logit_bias")}
    if "logit_bias" in options:
        given["sequence_bias"] = [[[token], bias] for token, bias in options["logit_bias"]]
    processors = Model()._get_logits_processor(transformers.GenerationConfig(**{"top_k": 0} | given, do_sample=True), ids.shape[1])
    at = sum(isinstance(each, (p.SequenceBiasLogitsProcessor, p.RepetitionPenaltyLogitsProcessor)) for each in processors)
    assert len(processors) == len(given), "every option has a processor"
    for i, process in enumerate(processors):
        if i == at:
            scores = openai_penalties(scores, generated, options)
        scores = process(ids, scores)
    if at == len(processors):
        scores = openai_penalties(scores, generated, options)
    chances = scores[0].double().softmax(-1)
    return {str(i): round(chance, 9) for i, chance in enumerate(chances.tolist()) if chance > 0}


def cases():
    rng = random.Random(20261122)
    choices = {"temperature": [0.3, 0.7, 1.5], "top_k": [1, 5, 20], "top_p": [0.1, 0.5, 0.9, 0.97], "min_p": [0.02, 0.1, 0.4],
               "typical_p": [0.2, 0.5, 0.9], "repetition_penalty": [0.8, 1.1, 1.7], "presence_penalty": [-0.5, 0.4, 1.3],
               "frequency_penalty": [-0.3, 0.2, 0.9], "logit_bias": [[[3, 2.5]], [[0, -4.0], [7, 1.25], [47, 6.0]]]}
    wanted = [[key] for key in choices] + [sorted(choices)] + [rng.sample(sorted(choices), 2 + i % 5) for i in range(50)]
    for i, keys in enumerate(wanted):
        spread = rng.choice([0.5, 2, 5])
        yield {"logits": [round(rng.gauss(0, spread), 4) for _ in range(VOCABULARY)],
               "prompt": [rng.randrange(VOCABULARY) for _ in range(6)], "generated": [rng.randrange(12) for _ in range(i % 9)],
               "options": {key: rng.choice(choices[key]) for key in keys}}


def main():
    rows = []
    for case in cases():
        case["chances"] = distribution(case["logits"], case["prompt"], case["generated"], case["options"])
        rows.append(json.dumps(case))
    OUT.write_text(f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__.split("+")[0]}", "cases": [\n'
                   + ",\n".join(rows) + "\n]}\n")


if __name__ == "__main__":
    main()
