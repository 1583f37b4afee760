"""The answer to a request does not depend on others: random schedules with compiled programs."""

import json
import os
import pathlib
import re

import checkpoint
import harness
from harness import BUNDLED, GOLDENS, Case, for_each
from test_gguf import converted, round_robin_path
from test_mtp import partly_right

# A release is tested with 200.
COUNT = int(os.environ.get("MICA_SCHEDULES", "4"))
SEED = os.environ.get("MICA_SCHEDULES_SEED", "1")


def with_state(name):
    """A model with recurrent, rolling and appended states, and room for long prompts."""
    return harness.once(f"{name}-schedules", lambda: checkpoint.edited(
        GOLDENS / "models" / name, pathlib.Path(harness.folder(f"{name}-schedules"), "model"),
        lambda config: config.update(max_position_embeddings=1024)))


def with_a_head():
    """A model whose head drafts right and wrong tokens, with room for long prompts."""
    return harness.once("qwen3-5-head-schedules", lambda: checkpoint.edited(
        partly_right("qwen3-5")[0], pathlib.Path(harness.folder("qwen3-5-head-schedules"), "model"), lambda c: c.update(max_position_embeddings=1024)))


#: The model and options for each weight format. "blocks" has a matrix in each block format from Q2_K to MXFP4; the last models have states,
#: which checkpoints restore, and a head.
FORMATS = {weights: lambda weights=weights: (BUNDLED / "minimind-dense", "--weights", weights) for weights in ("f32", "bf16", "int8", "int4")}
FORMATS |= {kind.lower(): lambda kind=kind: (converted("minimind-dense", kind)[0],) for kind in ("Q8_0", "Q4_0", "Q4_1")}
FORMATS |= {"blocks": lambda: (round_robin_path(),), "blocks_int8_rows": lambda: (round_robin_path(), "--rows", "int8")}

FORMATS |= {"state_" + weights: lambda weights=weights: (with_state("qwen3-5"), "--weights", weights) for weights in ("bf16", "int8")}
FORMATS |= {"mamba_int8": lambda: (with_state("granite-hybrid-dense"), "--weights", "int8")}
FORMATS |= {"head_" + weights: lambda weights=weights: (with_a_head(), "--keep-mtp", "--weights", weights) for weights in ("bf16", "int8")}


@for_each(FORMATS, "weights")
class Schedules(Case):
    def weights(self, weights):
        """Bit-identical: alone, and among 1 to 64 sequences that join, wait and are canceled, with 1 to 3 threads, up to 512 rows of
        prompts per call, drafts, and all options of the scheduler; the second turn of a conversation with and without its cache."""
        built = harness.program(*FORMATS[weights]())
        checker = pathlib.Path(harness.mica).with_name("mica-schedules")
        done = harness.execute([checker, built.path, SEED, COUNT], seconds=harness.SECONDS * (1 + COUNT // 50))
        found = re.match(r"(\d+) tokens compared, (\d+) requests canceled, (\d+) tokens of second turns cached, "
                         r"(\d+) tokens of prompts computed in calls that decode, (\d+) calls for prompts interrupted to decode, "
                         r"(\d+) tokens of answers recomputed between turns, (\d+) tokens of prompts copied, (\d+) tokens drafted by a head\n$",
                         done.stdout.decode())
        self.assertGreater(int(found[1]), 100 * COUNT)
        self.assertGreater(int(found[2]), 0)
        self.assertGreater(int(found[3]), 10 * COUNT)
        depends_on_role = json.loads(built.run("info", "--json").stdout)["manifest"].get("depends_on_role", False)
        self.assertEqual(int(found[4]) > 0, not depends_on_role)
        self.assertGreater(int(found[5]), 0)
        self.assertEqual(int(found[6]) > 0, depends_on_role)
        self.assertGreater(int(found[7]), 10 * COUNT)
        self.assertEqual(int(found[8]) > 10 * COUNT, weights.startswith("head_"))
