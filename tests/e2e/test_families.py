"""Every family in every precision of weights and caches, and published configurations without their weights."""

import json
import os
import pathlib
import shutil

import harness
from harness import Case, GOLDENS, SHARED, nmse, note, program
from test_goldens import Golden, comparable

# One model of each type: the first by name.
MODELS = {}
for _name in sorted(os.listdir(GOLDENS / "models")):
    _type = json.loads((GOLDENS / "models" / _name / "config.json").read_text(encoding="utf-8"))["model_type"]
    MODELS.setdefault(_type, _name)
CONFIGS = sorted(p.stem for p in (SHARED / "configs").glob("*.json")) or ["absent"]

# The largest NMSE of the logits: rows of random weights of 24 or 32 elements lose more than those of real models.
# test_goldens has f32 and bf16.
BOUNDS = {("int8", "int8"): 0.04, ("int4", "bf16"): 0.6}


@harness.for_each(sorted(MODELS), "precisions")
@harness.for_each(CONFIGS, "without_weights")
class Families(Case):
    def precisions(self, kind):
        golden = Golden(MODELS[kind])
        for (weights, kv), bound in BOUNDS.items():
            _, (got,) = program(golden.folder, "--weights", weights, "--kv", kv).generate([golden.prompt], 1)
            rows = comparable(golden, got)
            error = nmse(got[rows], golden.logits[rows])
            note(self, f"weights {weights}, caches {kv}: NMSE {error:.1e} (bound {bound}) over {len(rows)} rows")
            self.assertLessEqual(error, bound, f"weights {weights}, caches {kv}")

    def without_weights(self, name):
        """A folder with config.json alone reaches stage `kernels`."""
        config = harness.shared(f"configs/{name}.json")
        folder = pathlib.Path(harness.folder("config")) / name
        folder.mkdir()
        shutil.copy(config, folder / "config.json")
        text = harness.emit(folder, "kernels")
        self.assertIn("mica.attention", text)
        self.assertIn("kernel(", text)
