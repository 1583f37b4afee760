#!/usr/bin/env python3
"""Train one of the two bundled models on generated text and write it as a Hugging Face folder in
bf16.

    train.py dense|moe OUTDIR [--steps N] [--threads T] [--minutes M] [--check]

Text, tokenizer, order and initial weights follow from the seeds below; another version of torch or
number of threads rounds differently. --check prints the held-out accuracy of an existing folder.
Needs the packages of tests/goldens/requirements.txt; CPU only.
"""

import argparse
import json
import math
import pathlib
import random
import time

import safetensors.torch
import tokenizers
import torch
import torch.nn.functional as F

import model as models
import tasks

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PAD, BOS, EOS = range(3)
WINDOW = 96  # tokens in a row of the training batch, several documents each
PROMPT_WEIGHT = 0.1  # of a prompt's tokens in the loss; an answer's count 1
COMMON = {
    "model_type": "minimind",
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "hidden_act": "silu",
    "vocab_size": 512,
    "max_position_embeddings": 1024,
    "rope_theta": 10000.0,
}
CONFIGS = {
    "dense": COMMON
    | {
        "architectures": ["MiniMindForCausalLM"],
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "use_moe": False,
        "dtype": "bfloat16",
    },
    "moe": COMMON
    | {
        "architectures": ["MiniMindForCausalLM"],
        "hidden_size": 192,
        "intermediate_size": 192,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "use_moe": True,
        "num_experts_per_tok": 2,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "scoring_func": "softmax",
        "norm_topk_prob": True,
        "torch_dtype": "bfloat16",
    },
}
SEEDS = {"dense": 20260801, "moe": 20260802}
HELD_OUT, HELD_OUT_SEED = 200, 7


def text_of(task):
    return task.prompt, f" {task.answer}\n"


def train_tokenizer(seed, excluded):
    """Byte-level BPE; every digit is a separate token, so that sums are over digits."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=COMMON["vocab_size"],
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    stream = tasks.training_tasks(seed, excluded)
    tokenizer.train_from_iterator(("".join(text_of(next(stream))) for _ in range(20000)), trainer)
    if tokenizer.get_vocab_size() != COMMON["vocab_size"]:
        raise ValueError(f"the text gives {tokenizer.get_vocab_size()} tokens only")
    return tokenizer


def encode(tokenizer, documents):
    """[(prompt ids, answer ids with the end token)]"""
    prompts = tokenizer.encode_batch([p for p, _ in documents])
    answers = tokenizer.encode_batch([a for _, a in documents])
    return [(p.ids, a.ids + [EOS]) for p, a in zip(prompts, answers)]


class Batches:
    """Rows of whole documents, one after the other, cut at WINDOW. One row in eight begins with
    BOS.
    """

    def __init__(self, tokenizer, seed, excluded, rows):
        self.tokenizer, self.rows, self.rng = tokenizer, rows, random.Random(seed + 1)
        self.stream = tasks.training_tasks(seed + 2, excluded)
        self.documents = []

    def document(self):
        if not self.documents:
            self.documents = encode(
                self.tokenizer, [text_of(next(self.stream)) for _ in range(2000)]
            )
        return self.documents.pop()

    def next(self):
        """ids [rows, WINDOW + 1] and the weight of each as a target."""
        ids, weight = [], []
        for _ in range(self.rows):
            start = [BOS] if self.rng.random() < 0.125 else []
            row, share = list(start), [0.0] * len(start)
            while len(row) <= WINDOW:
                prompt, answer = self.document()
                row += prompt + answer
                share += [PROMPT_WEIGHT] * len(prompt) + [1.0] * len(answer)
            ids.append(row[: WINDOW + 1])
            weight.append(share[: WINDOW + 1])
        return torch.tensor(ids), torch.tensor(weight)


@torch.no_grad()
def greedy(net, prompts, steps=30):
    """Generated ids up to the end token, for prompts of any lengths; full prefills, padded on the
    right.
    """
    rows = [list(p) for p in prompts]
    done = [False] * len(rows)
    for _ in range(steps):
        live = [i for i, d in enumerate(done) if not d]
        if not live:
            break
        longest = max(len(rows[i]) for i in live)
        ids = torch.tensor([rows[i] + [PAD] * (longest - len(rows[i])) for i in live])
        last = torch.tensor([len(rows[i]) - 1 for i in live])
        hidden = net.hidden(ids)[torch.arange(len(live)), last]
        for i, token in zip(live, (hidden @ net.model.embed_tokens.weight.T).argmax(-1).tolist()):
            done[i] = token == EOS
            if not done[i]:
                rows[i].append(token)
    return [row[len(p) :] for row, p in zip(rows, prompts)]


def accuracy(net, tokenizer, chosen):
    """Share of exact answers, in all and per kind."""
    prompts = [e.ids for e in tokenizer.encode_batch([t.prompt for t in chosen])]
    right = {}
    for task, ids in zip(chosen, greedy(net, prompts)):
        right.setdefault(task.kind, []).append(tokenizer.decode(ids) == text_of(task)[1])
    everything = [r for kind in right.values() for r in kind]
    return sum(everything) / len(everything), {k: sum(v) / len(v) for k, v in sorted(right.items())}


def learning_rate(step, done, peak):
    """A warm-up of 200 steps, then half a cosine over the share `done` of the run."""
    return peak * min(1, (step + 1) / 200) * max(0.01, 0.5 * (1 + math.cos(math.pi * min(1, done))))


def train(kind, tokenizer, excluded, options):
    torch.manual_seed(SEEDS[kind])
    net = models.MiniMind(CONFIGS[kind])
    print(f"{kind}: {sum(p.numel() for p in net.parameters())} parameters", flush=True)
    decayed = [p for p in net.parameters() if p.dim() == 2]
    other = [p for p in net.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.05}, {"params": other, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )
    batches = Batches(tokenizer, SEEDS[kind], excluded, options.rows)
    start, averaged, probe = time.time(), None, tasks.held_out(99, 100)
    for step in range(options.steps):
        minutes = (time.time() - start) / 60
        done = max(step / options.steps, minutes / options.minutes)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, done, options.rate)
        ids, weight = batches.next()
        logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        share = weight[:, 1:].flatten()
        loss = (loss * share).sum() / share.sum()
        optimizer.zero_grad()
        (loss + 0.01 * net.balance()).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        averaged = loss.item() if averaged is None else 0.98 * averaged + 0.02 * loss.item()
        if step % 500 == 499:
            shares = accuracy(net, tokenizer, probe)
            print(f"step {step + 1}, {minutes:.1f} min, loss {averaged:.4f}, {shares}", flush=True)
    print(f"{step} steps, {minutes:.1f} min")
    return net


def write(path, kind, net, tokenizer, chosen):
    path.mkdir(parents=True, exist_ok=True)
    state = {n: t.detach().bfloat16().contiguous() for n, t in net.state_dict().items()}
    safetensors.torch.save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    (path / "model.safetensors").chmod(0o644)
    tokenizer.save(str(path / "tokenizer.json"))
    plain = {
        "lstrip": False,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }
    files = {
        "config.json": CONFIGS[kind],
        "generation_config.json": {
            "bos_token_id": BOS,
            "eos_token_id": EOS,
            "pad_token_id": PAD,
            "do_sample": True,
            "temperature": 0.3,
            "top_p": 0.95,
        },
        "tokenizer_config.json": {
            "add_bos_token": False,
            "add_eos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": {str(i): {"content": s} | plain for i, s in enumerate(SPECIAL)},
            "bos_token": SPECIAL[BOS],
            "eos_token": SPECIAL[EOS],
            "pad_token": SPECIAL[PAD],
            "clean_up_tokenization_spaces": False,
            "model_max_length": COMMON["max_position_embeddings"],
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    }
    for name, content in files.items():
        (path / name).write_text(json.dumps(content, indent=2) + "\n")
    with open(path / "heldout.jsonl", "w") as out:
        for task, (prompt, answer) in zip(chosen, encode(tokenizer, [text_of(t) for t in chosen])):
            out.write(
                json.dumps(
                    {
                        "kind": task.kind,
                        "prompt": task.prompt,
                        "answer": text_of(task)[1],
                        "prompt_ids": prompt,
                        "answer_ids": answer,
                    }
                )
                + "\n"
            )


def load(path):
    net = models.MiniMind(json.loads((path / "config.json").read_text()))
    net.load_state_dict(
        {n: t.float() for n, t in safetensors.torch.load_file(path / "model.safetensors").items()}
    )
    return net.eval(), tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=CONFIGS)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument(
        "--minutes", type=float, default=60, help="end, and decay the rate, within this time"
    )
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    chosen = tasks.held_out(HELD_OUT_SEED, HELD_OUT)
    probe = tasks.held_out(99, 100)
    if not options.check:
        excluded = chosen + probe
        tokenizer = train_tokenizer(SEEDS[options.kind], excluded)
        net = train(options.kind, tokenizer, excluded, options)
        write(options.out, options.kind, net, tokenizer, chosen)
    net, tokenizer = load(options.out)
    print("held out, bf16 weights:", accuracy(net, tokenizer, chosen))


if __name__ == "__main__":
    main()
