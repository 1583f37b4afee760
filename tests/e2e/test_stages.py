"""All stages of the bundled models, as written by `mica compile --dump-stages`, and mica-opt's pipelines between them."""

import os
import pathlib
import re

import harness
from harness import BUNDLED, Case

STAGES = ("model", "fused", "kernels", "loops", "llvm")

# How often ops, or launches of their kernels at stage `loops`, occur in the text of each stage: a layer's body once per layer
# type; from stage `kernels` on once per phase: few, several and many rows, and if arithmetic depends on the role of rows, few,
# several and many decode rows, and several and many prefill rows.
DENSE = {
    "model": {"rmsnorm": 5, "rope": 2, "attention": 1, "kv_append": 2, "repeat_kv": 2, "moe_gate": 0},
    "fused": {"rmsnorm": 3, "rope": 0, "rope_table": 1, "qkv_append": 1, "attention": 1, "repeat_kv": 0, "moe_gate": 0},
    "kernels": {"rmsnorm": 3, "rope_table": 1, "qkv_append": 1, "attention": 1, "moe_gate": 0},
    "loops": {"rmsnorm": 3, "rope_table": 1, "qkv_append": 1, "moe_gate": 0},
}
MOE = {
    "model": {"rmsnorm": 3, "rope": 2, "attention": 1, "kv_append": 2, "repeat_kv": 2, "moe_gate": 1, "moe_experts": 1},
    "fused": {"rmsnorm": 3, "rope": 0, "rope_table": 1, "qkv_append": 1, "attention": 1, "repeat_kv": 0, "moe_gate": 1,
              "moe_experts": 1},
    "kernels": {"rmsnorm": 3, "rope_table": 1, "qkv_append": 1, "attention": 1, "moe_gate": 1, "moe_experts": 1},
    "loops": {"rmsnorm": 3, "rope_table": 1, "qkv_append": 1, "moe_gate": 1},
}
ALIVE = {"minimind-dense": DENSE, "minimind-moe": MOE}

TARGETS = ("x86-64-v3", "x86-64-v4", "sapphirerapids")
HAVE_BF16 = ("sapphirerapids",)


def mica_opt(path, *options):
    """The output of mica-opt, without the empty line after a module."""
    tool = os.path.join(os.path.dirname(harness.mica), "mica-opt")
    return harness.execute([tool, path, *options]).stdout.decode().removesuffix("\n")


def without_names(text):
    return re.sub(r"%[\w.]+", "%", text)


def dump(name, precision, target):
    """The folder with the texts of all stages."""

    def make():
        folder = harness.folder(f"stages-{name}")
        harness.execute([harness.mica, "compile", BUNDLED / name, "--weights", precision, "--kv", precision, "--target",
                         target, "--emit", "llvm", "--dump-stages", folder, "-o", os.path.join(folder, "out")])
        return pathlib.Path(folder)

    return harness.once(("stages", name, precision, target), make)


def pipelines(precision, target):
    """The options of mica-opt that lead from each stage to the next one, as in the driver; the module keeps its target."""
    return ((f"--mica-to-fused=weights={precision} kv={precision}",),
            (f"--cpu-set-target=cpu={target}", "--mica-fused-to-kernels"),
            ("--mica-kernels-to-loops",),
            ("--mica-loops-to-llvm",))


CASES = [f"{name}_{precision}_{target}" for name in ALIVE for precision in ("f32", "bf16", "int8") for target in TARGETS]


@harness.for_each(CASES, "stages")
class Stages(Case):
    def stages(self, case):
        """Each stage round-trips, contains the expected ops, and is lowered to the next one, byte for byte. mica names values after the
        model's modules; mica-opt, which only reads text, numbers them."""
        name, precision, target = case.split("_")
        folder = dump(name, precision, target)
        files = [folder / f"{number}-{stage}.mlir" for number, stage in enumerate(STAGES)]
        self.assertEqual(sorted(folder.glob("*.mlir")), files)
        steps = pipelines(precision, target)
        for number, (stage, file) in enumerate(zip(STAGES, files)):
            text = file.read_text(encoding="utf-8")
            printed = mica_opt(file)
            named = stage in ("model", "fused", "kernels")
            same_as = without_names if named else str
            self.same(same_as(printed), same_as(text), f"{stage} read and printed")
            for op, expected in self.alive(name, precision, target, stage).items():
                self.assertEqual(self.count(stage, op, text), expected, f"{op} at stage {stage}")
            if number:
                self.same(mica_opt(files[number - 1], *steps[number - 1]), printed,
                          f"{stage} by {' '.join(steps[number - 1])}")

    @staticmethod
    def alive(name, precision, target, stage):
        """Op -> number of occurrences. With bf16 dot products, prefill and decode of quantized weights have functions of their own."""
        ops = ALIVE[name].get(stage, {})
        if stage in ("model", "fused"):
            return ops
        phases = 5 if precision == "int8" and target in HAVE_BF16 else 3
        counts = {op: phases * count for op, count in ops.items()}
        return counts | ({"attention": phases - 1, "attention_chunks": 1} if stage == "loops" else {})

    def same(self, got, wanted, what):
        if got != wanted:
            pairs = zip(got.splitlines() + ["(end)"], wanted.splitlines() + ["(end)"])
            line, (a, b) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
            self.fail(f"{what}: line {line} is\n{a[:400]}\nand not\n{b[:400]}")

    @staticmethod
    def count(stage, op, text):
        pattern = rf"exec\.launch @{op}(?:_\d+)? " if stage == "loops" else rf"mica\.{op} "
        return len(re.findall(pattern, text))
