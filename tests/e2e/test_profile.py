"""bench --profile: names, calls, bytes and operations of all kernels, as computed by the compiler."""

import json
import os
import re

import harness
from harness import BUNDLED, Case, GOLDENS, emit, note, program

LIMITS = ("--peak-gb", 50, "--peak-gflop", 500)


def profiles(built, *arguments):
    out = built.run("bench", "--profile", "--json", "--repeat", 1, *LIMITS, *arguments).stdout
    return {r["test"]: r["profile"] for r in json.loads(out)["results"]}


def cost_of(built):
    return json.loads(built.run("info", "--json").stdout)["manifest"]["cost"]


def cache_bytes_of(built):
    """Bytes of the caches that a token adds, which steps read for each position."""
    return sum(cache["bytes_per_token"] for cache in json.loads(built.run("info", "--json").stdout)["manifest"]["caches"])


def kernel(profile, start):
    """The sum of all kernels whose name begins with this."""
    chosen = [k for k in profile["kernels"] if k["kernel"].startswith(start)]
    return {key: sum(k[key] for k in chosen) for key in ("launches", "bytes", "flops")}


@harness.for_each(("minimind-dense", "minimind-moe"), "step")
class Profile(Case):
    def step(self, model):
        built = program(BUNDLED / model)
        cost, profile = cost_of(built), profiles(built, "--prompt", 0, "--gen", 8)["tg8"]
        self.assertEqual(profile["calls"], 8)
        ir = emit(BUNDLED / model, "loops")
        for entry in profile["kernels"]:
            self.assertIn(f"@{entry['kernel']}(", ir)
            self.assertEqual(entry["launches"] % 8, 0, entry)
        parts = sum(k["seconds"] for k in profile["kernels"]) + profile["rest_seconds"]
        self.assertAlmostEqual(parts, profile["seconds"], delta=1e-6)
        self.assertAlmostEqual(sum(k["share"] for k in profile["kernels"]) + profile["rest_seconds"] / profile["seconds"],
                               1, delta=1e-3)
        # The manifest counts matrices; the profile also norm weights, the embedding row and padding.
        weights = profile["bytes_per_token"]
        flops = sum(k["flops"] for k in profile["kernels"] if not k["kernel"].startswith("attention")) / 8
        self.assertTrue(cost["weight_bytes_per_token"] < weights < 1.1 * cost["weight_bytes_per_token"], weights)
        counted = cost["flops_per_token"] + cost["flops_per_logits"]
        self.assertTrue(0.9 * counted < flops <= counted, flops)
        # Of a layer, and of the logits: matmuls (2 of experts, 3 of others), appends and attention, the gate's scores.
        regions = {"minimind-dense": 3 * 5, "minimind-moe": 4 * 7}[model] + 1
        self.assertLessEqual(profile["regions_per_token"], regions)
        note(self, f"{profile['regions_per_token']:.1f} parallel regions and {weights / 1e6:.3f} MB per token")

    def test_regions_of_integers(self):
        """One token takes as many as in bf16; with eight tokens, rows after gated matmuls and attention are quantized by separate regions,
        two per layer."""
        for weights in ("int8", "int4"):
            built = program(BUNDLED / "minimind-dense", "--weights", weights)
            for batch, maximum in ((1, 3 * 5 + 1), (8, 3 * 12)):
                profile = profiles(built, "--prompt", 0, "--gen", 4, "--batch", batch)[f"tg4@b{batch}" if batch > 1 else "tg4"]
                regions = profile["regions_per_token"] * batch
                note(self, f"{weights}, {batch} at once: {regions:.1f} parallel regions per call")
                self.assertLessEqual(regions, maximum)

    def test_attention_follows_the_depth(self):
        built = program(BUNDLED / "minimind-dense")
        per_position = cache_bytes_of(built)
        for depth in (0, 100):
            profile = profiles(built, "--prompt", 0, "--gen", 4, "--depth", depth)[f"tg4@d{depth}" if depth else "tg4"]
            # Steps that attend to depth + 1 to depth + 4 positions.
            self.assertEqual(kernel(profile, "attention")["bytes"], (4 * depth + 10) * per_position)
            self.assertEqual(kernel(profile, "qkv_append")["bytes"], 4 * per_position)

    def test_window(self):
        """A layer with a sliding window does not read more than the window."""
        built = program(GOLDENS / "models/llama-gqa")
        ir = emit(GOLDENS / "models/llama-gqa", "model")
        edited, changed = re.subn(r"(causal scale\([^)]*\))", r"\1 window(8)", ir)
        self.assertGreater(changed, 0)
        windowed = harness.compile_ir(edited, GOLDENS / "models/llama-gqa")
        for each, seen in ((built, 40 + 41), (windowed, 8 + 8)):
            profile = profiles(each, "--prompt", 0, "--gen", 2, "--depth", 39)["tg2@d39"]
            self.assertEqual(kernel(profile, "attention")["bytes"], seen * cache_bytes_of(each))

    def test_prompt(self):
        """Many rows: oneDNN's matmuls with their shapes, each expert at most once."""
        harness.needs_cpu("avx512bw")
        built = program(BUNDLED / "minimind-moe", "--weights", "f32")
        profile = profiles(built, "--prompt", 128, "--gen", 0)["pp128"]
        self.assertEqual(profile["calls"], 1)
        products = kernel(profile, "onednn_")
        self.assertGreater(products["launches"], 0)
        experts = kernel(profile, "experts_")
        self.assertGreater(experts["bytes"], 0)
        weights = json.loads(built.run("info", "--json").stdout)["manifest"]["weight_bytes"]
        self.assertLess(experts["bytes"] + products["bytes"], weights)

    def test_trace(self):
        built = program(BUNDLED / "minimind-dense")
        path = os.path.join(harness.folder("trace"), "trace.json")
        built.run("bench", "--prompt", 16, "--gen", 4, "--repeat", 1, "--trace", path, "--threads", 2, *LIMITS)
        with open(path, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(processes, {1: "pp16", 2: "tg4"})
        for pid, calls in ((1, 1), (2, 4)):
            spans = [e for e in events if e["ph"] == "X" and e["pid"] == pid]
            whole = [e for e in spans if e["name"] == "call"]
            self.assertEqual(len(whole), calls)
            for event in spans:
                self.assertTrue(any(w["ts"] <= event["ts"] and event["ts"] + event["dur"] <= w["ts"] + w["dur"] + 1e-2
                                    for w in whole), event)

    def test_file(self):
        """`--profile-json`: identifies the program by the hash of its code, and each kernel by its location in the model."""
        built = program(BUNDLED / "minimind-dense")
        path = os.path.join(harness.folder("profile"), "profile.json")
        built.run("bench", "--prompt", 64, "--gen", 4, "--repeat", 1, "--profile-json", path, *LIMITS)
        with open(path, encoding="utf-8") as f:
            file = json.load(f)
        self.assertEqual(file["mica_profile"], 1)
        self.assertEqual(file["program"]["model"], "minimind-dense")
        self.assertRegex(file["program"]["code"], r"^[0-9a-f]{16}$")
        self.assertEqual([t["test"] for t in file["tests"]], ["pp64", "tg4"])
        for test in file["tests"]:
            parts = sum(k["seconds"] for k in test["kernels"]) + test["rest_seconds"]
            self.assertAlmostEqual(parts, test["seconds"], delta=1e-6)
            for kernel in test["kernels"]:
                self.assertTrue(kernel["location"], kernel)
        places = {k["kernel"]: k["location"] for k in file["tests"][1]["kernels"]}
        # A fused matmul has the locations of all original ones.
        joined = [set(p) for k, p in places.items() if k.startswith("gated_linear")]
        self.assertEqual(len(joined), 1)
        self.assertTrue({"model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"} <= joined[0], joined)
        # Equal code has the same hash, other code another one.
        again = program(BUNDLED / "minimind-dense", "--weights", "f32")
        other = os.path.join(harness.folder("profile"), "other.json")
        again.run("bench", "--prompt", 0, "--gen", 1, "--repeat", 1, "--profile-json", other, *LIMITS)
        with open(other, encoding="utf-8") as f:
            self.assertNotEqual(json.load(f)["program"]["code"], file["program"]["code"])
        # Other files are not replaced.
        kept = os.path.join(harness.folder("profile"), "notes.txt")
        with open(kept, "w", encoding="utf-8") as f:
            f.write("mine")
        done = built.run("bench", "--gen", 1, "--prompt", 0, "--repeat", 1, "--profile-json", kept, *LIMITS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"is not a profile of a program", done.stderr)

    def test_table(self):
        built = program(BUNDLED / "minimind-dense")
        out = built.run("bench", "--prompt", 0, "--gen", 4, "--repeat", 1, "--profile").stdout.decode()
        self.assertRegex(out, r"profile of tg4: 4 calls of the model; per token [\d.]+ parallel regions and [\d.]+ MB")
        self.assertRegex(out, r"\nlimits: [\d.]+ GB/s read, \d+ GFLOP/s \(\w+")
        self.assertRegex(out, r"\n  attention\w* +\d+ ")
        self.assertRegex(out, r"\n  total +\d+ +[\d.]+ +100.0 ")
