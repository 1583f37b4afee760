#!/usr/bin/python3
"""The table of goals.py, and that of docs/benchmarks.md, which must be that of the committed figures; the count of tokens by clients.py."""

import argparse
import asyncio
import json
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import clients  # noqa: E402
import goal_table  # noqa: E402
import published  # noqa: E402

PAGE = HERE.parents[2] / "docs/benchmarks.md"
PEER = goal_table.PEER


def streams(one, eight):
    return {"tokens/s of 1": one, "tokens/s of 8": eight, "8 over 1": eight / one}


def loop(tokens, **more):
    return {"tokens/s": tokens, "p99 first token, s": 2, "p99 gap, ms": 5, **more}


class Table(unittest.TestCase):
    def table(self, *files):
        """The cells of the table for (name, rounds by work and engine, more conditions, others' load)."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, rounds, conditions, others in files:
                conditions = {"mica": "abc", "weights": "int8", "command": "goals.py m --peer bin/server data/m-Q8_0.gguf",
                              "kernel": "6.1.2-v9", **conditions}
                paths.append(pathlib.Path(folder) / f"{name}.json")
                paths[-1].write_text(json.dumps({"conditions": conditions, "load": {work: {"others": others} for work in rounds}, "rounds": rounds}))
            head, line, *rows = goal_table.table_of(paths).splitlines()
            self.assertEqual(f"{head}\n{line}", goal_table.HEAD)
            return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]

    def test_verdicts(self):
        rows = self.table(("tiny-int8-abc", {"streams": {"Mica": [streams(10, 33.4)], PEER: [streams(10, 20)]}}, {}, 0.01))
        self.assertEqual(rows, [["tiny int8, Q8_0; commit abc; v9; 1 round", goal_table.divergence("int8"), "1 stream, tokens/s", "10.0", "10.0", "1.00x", ""],
                                ["", "", "8 streams, tokens/s", "33.4", "20.0", "1.67x", ">= 1.5x: reached (1 round)"],
                                ["", "", "8 streams, speedup over one", "3.34", "2.00", "", ">= 4: missed: 3.34 (1 round)"]])
        rows = self.table(("tiny-int4-abc", {"batch": {"Mica": [{"time over --batch": 1.0, "time over --batch, streamed": 1.05}]}}, {"weights": "int4"}, 0))
        self.assertEqual([row[-1] for row in rows], ["<= 1.03: reached (1 round)", "<= 1.03: missed: 1.05 (1 round)"])
        rows = self.table(("tiny-int4-abc", {"idle": {"Mica": [{"MB more": 10, "gaps over undisturbed": gaps} for gaps in (1.2, 1.1)]}}, {}, 0))
        self.assertEqual([row[-1] for row in rows], ["<= 50: reached (10.0 to 10.0)", '<= 1.1 (ours for "undisturbed"): missed: 1.15 (1.10 to 1.20)'])

    def test_divergences_are_of_the_weights(self):
        (_, model), *_ = published.runs_of("trained", published.read())
        kls = {row["format"]: published.small(row["cells"]["mica decode"]["kl"]) for row in model["own"] + model["rows"]}
        for weights, format in (("int8", "`--weights int8`"), ("int4", "`--weights int4`"), ("q4_1", "Q4_1"), ("f32", "")):
            rows = self.table((f"tiny-{weights}-abc", {"turn": {"Mica": [{"computed": 1, "second turn, s": 2}]}}, {"weights": weights}, 0))
            self.assertEqual([row[1] for row in rows], [kls.get(format, "-"), ""])

    def test_runs_of_a_commit_are_merged(self):
        """Ratios are medians of the rounds' ratios; a verdict is of the figure, not of what is printed."""
        rounds = lambda *pairs: {"streams": {"Mica": [streams(10, mine) for mine, _ in pairs], PEER: [streams(10, other) for _, other in pairs]}}
        rows = self.table(("tiny-bf16-abc", rounds((40, 20), (30, 20)), {"mica": "abc+changes"}, 0.01),
                          ("tiny-bf16-abc-2", rounds((29.98, 20)), {"mica": "abc+changes"}, 0.104),
                          ("tiny-bf16-def", rounds((29.98, 20)), {"mica": "def"}, 0))
        self.assertEqual(rows[0][0], "tiny bf16, Q8_0; commit abc+changes; v9; 2 runs, 3 rounds; other processes used 0.10 processors")
        self.assertEqual(rows[1][3:], ["30.0", "20.0", "1.50x", ">= 1.5x: reached (1.50 to 2.00)"])
        self.assertEqual((rows[3][0], rows[4][-1]), ("tiny bf16, Q8_0; commit def; v9; 1 round", ">= 1.5x: missed: 1.50 (1 round)"))

    def test_runs_of_another_machine_have_rows_of_their_own(self):
        rounds = {"streams": {"Mica": [streams(10, 45), streams(10, 20)], PEER: [streams(10, 20)]}}
        with self.assertRaisesRegex(ValueError, "has not the same number of rounds"):
            self.table(("tiny-bf16-abc", rounds, {}, 0))
        rows = self.table(("tiny-bf16-abc", rounds, {"note": "interrupted"}, 0),
                          ("tiny-bf16-abc-2", {"streams": {"Mica": [streams(10, 30)], PEER: [streams(10, 20)]}}, {"kernel": "6.1.2-v8"}, 0))
        self.assertEqual([row[0] for row in rows if row[0]], ["tiny bf16, Q8_0; commit abc; v9; 1 round; interrupted", "tiny bf16, Q8_0; commit abc; v8; 1 round"])
        self.assertEqual([row[-1] for row in rows if "speedup" in row[2]], [">= 4: reached (1 round)", ">= 4: missed: 3.00 (1 round)"])

    def test_a_loop_has_several_requests_per_client(self):
        def verdicts(**more):
            rows = self.table(("tiny-int8-abc", {"loop": {"Mica": [loop(30, **more)], PEER: [loop(10, **more)]}}, {}, 0))
            return [row[-1] for row in rows[:2]], rows[0][2]
        few = "not measured: 1.1 requests per client"
        sizes = {"clients": 4, "scale": 4, "shortest prompt": 8, "longest prompt": 512, "shortest answer": 4, "longest answer": 64}
        self.assertEqual(verdicts(**{"requests per client": 1.1}, **sizes),
                         ([f">= 1.5x: {few}", f"<= 1x: {few}"],
                          "4 clients in a closed loop, prompts of 8 to 512 tokens, answers of 4 to 64 (1/4 of the goal's): tokens/s"))
        self.assertEqual(verdicts(**{"requests per client": 2}),
                         ([">= 1.5x: reached (1 round)", "<= 1x: reached (1 round)"],
                          "64 clients in a closed loop, prompts of 32 to 2048 tokens, answers of 16 to 256: tokens/s"))
        unknown = "not measured: the requests per client were not recorded"
        self.assertEqual(verdicts()[0], [f">= 1.5x: {unknown}", f"<= 1x: {unknown}"])

    def test_the_page_has_the_committed_figures(self):
        text, found = PAGE.read_text(encoding="utf-8"), set()
        for command, table in re.findall(r"<!-- goals\.py --table (.*) -->\n\n((?:\|.*\n)+)", text):
            paths = [HERE / "figures" / f"{name}.json" for name in command.split()]
            self.assertEqual(table, goal_table.table_of(paths) + "\n", f"write what `tests/bench/serve/goals.py --table` prints for {command}")
            found.update(paths)
        # No run is hidden by another one.
        self.assertEqual(found, set((HERE / "figures").glob("*.json")))


class Tokens(unittest.TestCase):
    def stream(self, asked, count, usage):
        """The number of times of an answer with `count` events and a usage, in the form of both servers."""
        choice = lambda reason: {"text": "a", "index": 0, "finish_reason": reason}
        events = [{"choices": [choice(None)]}] * count + [{"choices": [choice("length")], **usage}]

        async def respond(reader, writer):
            await reader.readuntil(b"}")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events) + b"data: [DONE]\n\n")
            writer.close()

        async def run():
            async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
                url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
                client = clients.Client(argparse.Namespace(url=url, seed=1, vocabulary=9, prompt=(3, 3), answer=(asked, asked)), 0)
                times = []
                self.assertEqual(await client.stream(client.body(), times), 200)
                return len(times)

        return asyncio.run(run())

    def test_the_server_counts_the_tokens_that_are_asked_for(self):
        self.assertEqual(self.stream(4, 4, {"usage": {"completion_tokens": 4}}), 4)
        # One event may have the text of several tokens.
        self.assertEqual(self.stream(4, 2, {"usage": {"completion_tokens": 4}}), 2)
        for usage in ({"usage": {"completion_tokens": 3}}, {"usage": None}, {}):
            with self.assertRaisesRegex(AssertionError, "^4 tokens are asked for, the usage is {"):
                self.stream(4, 4, usage)


if __name__ == "__main__":
    unittest.main()
