"""The answer to a request does not depend on others: random schedules with compiled programs."""

import os
import pathlib
import re

import harness
from harness import BUNDLED, Case, for_each

# A release is tested with 200.
COUNT = int(os.environ.get("MICA_SCHEDULES", "4"))


@for_each(("f32", "bf16", "int8", "int4"), "weights")
class Schedules(Case):
    def weights(self, weights):
        """Bit-identical: alone, and among 1 to 64 sequences that join, wait and are canceled, with any prefill chunk size; the second turn
        of a conversation with and without its cache."""
        built = harness.program(BUNDLED / "minimind-dense", "--weights", weights)
        checker = pathlib.Path(harness.mica).with_name("mica-schedules")
        done = harness.execute([checker, built.path, "1", COUNT], seconds=harness.SECONDS * (1 + COUNT // 50))
        found = re.match(r"(\d+) tokens compared, (\d+) requests cancelled, (\d+) tokens of second turns cached\n$", done.stdout.decode())
        self.assertGreater(int(found[1]), 100 * COUNT)
        self.assertGreater(int(found[2]), 0)
        self.assertGreater(int(found[3]), 10 * COUNT)
