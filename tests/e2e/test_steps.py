"""Steps and batches: logits do not depend on how a prompt is split and on other sequences in the batch."""

import numpy as np

import checkpoint
import harness
from harness import Case, GOLDENS, program, shared
from test_backend import random_model

MODELS = ("llama-gqa", "minimind1-dense", "minimind2-dense-yarn-long", "minimind2-moe", "minimind3-dense",
          "minimind3-moe", "qwen3-moe-mixed",
          # Of each kind of state: a window, a convolution's inputs, the matrices of Mamba 2 and of the gated delta rule.
          "gemma4-text", "lfm2", "mamba2", "qwen3-5")


def longest(model, n):
    """`n`, or the model's context if that is shorter."""
    config = checkpoint.config_of(folder_of(model))
    # Mamba 2 has no limit.
    return min(n, config.get("max_position_embeddings") or config.get("max_seq_len", n))


def prompt_of(model, n):
    """`n` ids for a golden model or for stories260K (512 ids)."""
    vocabulary = 512 if model == "stories260K" else 64
    return np.random.default_rng(n).integers(3, vocabulary, n).tolist()


def folder_of(model):
    return shared("models/stories260K") if model == "stories260K" else GOLDENS / "models" / model


@harness.for_each(MODELS + ("stories260K",), "prefill_in_pieces")
@harness.for_each(MODELS + ("stories260K",), "prefill_then_single_steps")
@harness.for_each(MODELS + ("stories260K",), "batch_equals_alone")
class Steps(Case):
    def prefill_in_pieces(self, model):
        """Chunks of one row are single steps; others end within a block of the cache, or just before its end."""
        n = longest(model, 100)
        prompt, built = prompt_of(model, n), program(folder_of(model), "--weights", "f32")
        _, whole = built.generate([prompt], 1)
        for chunk in (1, 2, 17, n // 2, 63, n - 1):
            ids, rows = built.generate([prompt], 1, "--prefill-chunk", chunk)
            self.close(rows[0], whole[0], 1e-5, f"chunks of {chunk}")

    def prefill_then_single_steps(self, model):
        """n ids at once, compared with k ids at once and the rest as single steps: the greedy continuation is used as a prompt."""
        n = longest(model, 90)
        built = program(folder_of(model), "--weights", "f32")
        for k in (1, n // 2, n - 1):
            start = prompt_of(model, n)[:k]
            ids, steps = built.generate([start], n - k + 1)
            _, whole = built.generate([start + ids[0][:-1]], 1)
            self.assertEqual(len(steps[0]), n)
            self.close(steps[0], whole[0], 1e-5, f"prefill of {k}, then {n - k} steps")
            self.assertEqual([int(i) for i in whole[0][k - 1:].argmax(axis=1)], ids[0], f"k = {k}")

    def batch_equals_alone(self, model):
        built = program(folder_of(model), "--weights", "f32")
        prompts = [prompt_of(model, n) for n in (37, 5, longest(model, 90) - 20)]
        for chunk in ((), ("--prefill-chunk", 16)):
            ids, rows = built.generate(prompts, 20, *chunk)
            for i, prompt in enumerate(prompts):
                alone, row = built.generate([prompt], 20)
                self.assertEqual(ids[i], alone[0], f"sequence {i} {chunk}")
                self.close(rows[i], row[0], 1e-5, f"sequence {i} of three {' '.join(map(str, chunk))}")


ODD = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 200, "intermediate_size": 333, "num_hidden_layers": 2,
       "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 40, "vocab_size": 1001,
       "max_position_embeddings": 1000, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}
SHAPES = {
    "odd": ODD,
    "untied": {**ODD, "num_key_value_heads": 5, "tie_word_embeddings": False, "intermediate_size": 1000},
    "smollm_like": {**ODD, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
                    "num_key_value_heads": 3, "head_dim": 64},
    "wide_heads": {**ODD, "model_type": "qwen3", "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
                   "head_dim": 128},
    "many_experts": {**ODD, "model_type": "qwen3_moe", "num_experts": 20, "num_experts_per_tok": 3,
                     "moe_intermediate_size": 72, "norm_topk_prob": True, "decoder_sparse_step": 1,
                     "mlp_only_layers": []},
}


@harness.for_each(SHAPES, "shape")
@harness.for_each(SHAPES, "shape_avx2")
class Shapes(Case):
    """Sizes that are not multiples of anything: many rows by oneDNN compared with single steps by generated kernels."""

    def check(self, name, *options, env=None):
        folder = random_model(SHAPES[name], SHAPES[name]["num_hidden_layers"], "f32")
        built = program(folder, *options)
        prompt = np.random.default_rng(7).integers(0, 1001, 201).tolist()
        ids, whole = built.generate([prompt], 5, env=env)
        for chunk in (1, 20, 64):
            same, rows = built.generate([prompt], 5, "--prefill-chunk", chunk, env=env)
            self.assertEqual(same, ids)
            self.close(rows[0], whole[0], 1e-5, f"chunks of {chunk}")
        return whole[0]

    def shape(self, name):
        self.check(name)

    def shape_avx2(self, name):
        def compiled(*options):
            return self.check(name, "--target", "x86-64-v3", *options, env={"ONEDNN_MAX_CPU_ISA": "AVX2"})

        self.close(compiled(), self.check(name), 1e-5, "x86-64-v3 against native")
        # Other targets round rows of a prompt differently.
        for weights in ("int8", "int4"):
            with self.subTest(weights):
                compiled("--weights", weights)


# Weights, and the cache if its precision does not follow from them.
PRECISIONS = {**{weights: ("--weights", weights) for weights in ("f32", "bf16", "int8", "int4")},
              "cache_int8": ("--weights", "bf16", "--kv", "int8")}


@harness.for_each(PRECISIONS, "pieces")
@harness.for_each(PRECISIONS, "native_pieces")
class Bits(Case):
    """A row's logits are bit-identical in any batch: matmuls and attention sum a row in one order, whatever the tiles and chunks. More than
    512 positions are several chunks of attention."""

    def same(self, built, cuts):
        rng = np.random.default_rng(3)
        prompts = [rng.integers(0, 1001, n).tolist() for n in (700, 33, 1, 530)]
        alone = [built.generate([prompt], 4, "--threads", 1, *cuts[0]) for prompt in prompts]
        for cut in cuts:
            for threads in (2, 3):
                ids, rows = built.generate(prompts, 4, "--threads", threads, *cut)
                for i, (one, logits) in enumerate(alone):
                    self.assertEqual(ids[i], one[0], f"sequence {i} {cut}")
                    self.assertTrue(np.array_equal(rows[i], logits[0]),
                                    f"sequence {i} {cut} {threads} threads: {harness.difference(rows[i], logits[0]):.1e}")

    def pieces(self, precision):
        """All chunk sizes, for a target without oneDNN's matmuls."""
        shape = {**SHAPES["smollm_like"], "hidden_size": 192, "intermediate_size": 256}
        built = program(random_model(shape, 2, "f32"), *PRECISIONS[precision], "--target", "x86-64-v3")
        self.same(built, [("--prefill-chunk", k) for k in (1024, 1, 16, 17, 250)])

    def native_pieces(self, precision):
        """The same for this machine. Matmuls are deep enough that oneDNN, used for more than 32 rows, sums them in segments of 512 and of
        1024, or in the order of AMX tiles; generated kernels do the same."""
        self.same(program(random_model(SHAPES["smollm_like"], 2, "f32"), *PRECISIONS[precision]),
                  [("--prefill-chunk", k) for k in (1, 7, 32, 33, 250, 1024)])
