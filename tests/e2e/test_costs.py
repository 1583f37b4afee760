"""tests/bench/costs.py with real programs."""

import harness
from harness import Case, note, program

SCRIPT = harness.ROOT / "tests/bench/costs.py"


def table(done):
    """Rows of a Markdown table as dictionaries by column title."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.decode().splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


class Costs(Case):
    def test_compiling_and_running(self):
        bundled = harness.BUNDLED / "minimind-dense"
        rows = table(harness.execute(["/usr/bin/python3", SCRIPT, harness.mica, bundled, "--weights", "int8,int4", "--runs", 1,
                                      "--prompt", 64, "--text", bundled / "heldout.jsonl"]))
        self.assertEqual([row.pop("weights") for row in rows], ["int8", "int4"])
        int8, int4 = ([float(each) for each in row.pop("KL, prefill / decode").split(" / ")] for row in rows)
        for phase in (0, 1):
            self.assertLess(0, int8[phase])
            self.assertLess(int8[phase], int4[phase])
        for row in rows:
            note(self, str(row))
            self.assertEqual(row["prompt"], "64")
            numbers = {name: float(cell) for name, cell in row.items()}
            # Memory is sampled: hardly any sample falls into such a short run.
            seen = ("anonymous, MB", "mapped, MB", "cache, MB")
            self.assertGreater(min(number for name, number in numbers.items() if name not in seen), 0, row)
            self.assertLess(numbers["beside weights, MB"], 30)
            self.assertLess(numbers["beside weights and cache, MB"], 64)
            self.assertLess(numbers["warm, s"], numbers["mica run cold, s"])

    def test_programs(self):
        built = program(harness.BUNDLED / "minimind-dense")
        (row,) = table(harness.execute(["/usr/bin/python3", SCRIPT, "--programs", built.path, "--prompt", 64]))
        self.assertEqual(row["prompt"], "64")
        self.assertGreater(float(row["beside weights and cache, MB"]), 1)
