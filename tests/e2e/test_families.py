"""Every family in every precision of weights and caches, and published configurations without their weights."""

import json
import os
import pathlib
import shutil

import harness
from harness import Case, GOLDENS, SHARED, nmse, note, program
from test_goldens import Golden, comparable

# The models of each type, by name. The first one is verified.
MODELS = {}
for _name in sorted(os.listdir(GOLDENS / "models")):
    _type = json.loads((GOLDENS / "models" / _name / "config.json").read_text(encoding="utf-8"))["model_type"]
    MODELS.setdefault(_type, []).append(_name)
CONFIGS = sorted(p.stem for p in (SHARED / "configs").glob("*.json")) or ["absent"]

# The largest NMSE of the logits: rows of 24 or 32 random weights lose more than those of real models, so these bounds only find
# gross errors. `mica verify` has tight bounds for each op, because they exclude rounding. test_goldens tests f32 and bf16.
BOUNDS = {("int8", "int8"): 0.04, ("int4", "bf16"): 0.6}


def has_recurrent_state(built):
    caches = json.loads(built.run("info", "--json").stdout)["manifest"]["caches"]
    return any("matrix" in cache for cache in caches)


@harness.for_each(sorted(MODELS), "precisions")
@harness.for_each(CONFIGS, "without_weights")
class Families(Case):
    def precisions(self, kind):
        goldens = [Golden(name) for name in MODELS[kind]]
        golden = goldens[0]
        # Logits are those of the first model whose first row does not depend on a near tie of experts.
        clear = next(each for each in goldens if each.gate_margin is None or each.gate_margin.min(axis=0)[0] >= 0.005)
        for (weights, kv), bound in BOUNDS.items():
            built = program(clear.folder, "--weights", weights, "--kv", kv)
            _, (got,) = built.generate([clear.prompt], 1)
            rows = comparable(clear, got)
            error = nmse(got[rows], clear.logits[rows])
            note(self, f"weights {weights}, caches {kv}: NMSE {error:.1e} (bound {bound}) over {len(rows)} rows")
            self.assertLessEqual(error, bound, f"weights {weights}, caches {kv}")
            # More than two chunks of a recurrent state: the third is the first whose matrix is computed from another one.
            done = harness.execute([harness.mica, "verify", golden.folder, "--weights", weights, "--kv", kv, "--positions",
                                    "100" if has_recurrent_state(built) else "40", "--json"])
            found = json.loads(done.stdout)
            self.assertLessEqual(found["bounds"]["op_nmse"], 1.3e-5)
            note(self, f"weights {weights}, caches {kv}: worst op {max(op['nmse'] for op in found['ops']):.1e}")

    def without_weights(self, name):
        """A folder with only config.json reaches stage `kernels`."""
        config = harness.shared(f"configs/{name}.json")
        folder = pathlib.Path(harness.folder("config")) / name
        folder.mkdir()
        shutil.copy(config, folder / "config.json")
        text = harness.emit(folder, "kernels")
        self.assertIn("mica.attention", text)
        self.assertIn("kernel(", text)

    def test_latent_is_cached_once(self):
        """Each position stores the latent and the part of the keys shared by all heads, in any precision."""
        for name in ("deepseek-v2", "deepseek-v2-lite", "deepseek-v3"):
            folder = GOLDENS / "models" / name
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            width = config["kv_lora_rank"] + config["qk_rope_head_dim"]
            for kv, size in (("f32", 4 * width), ("bf16", 2 * width), ("int8", width + 4)):
                out = harness.execute([harness.mica, "inspect", folder, "--kv", kv, "--json"]).stdout
                self.assertEqual(json.loads(out)["cache_bytes_per_token"], config["num_hidden_layers"] * size, (name, kv))

    def test_latent_attention_of_published_size(self):
        """The attention of DeepSeek-V3: a cached head of 576 elements, shared by 128 query heads, 16 at a time."""
        config = json.loads((GOLDENS / "models" / "deepseek-v3" / "config.json").read_text(encoding="utf-8"))
        config |= {"hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
                   "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "qk_head_dim": 192,
                   "v_head_dim": 128, "head_dim": 64}
        folder = pathlib.Path(harness.folder("config")) / "published"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        text = harness.emit(folder, "kernels")
        self.assertIn("!mica.kv_cache<3 x 1 x 576 x f32", text)
        self.assertIn("split = true, heads = 16>", text)
