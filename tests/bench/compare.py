#!/usr/bin/python3
"""Compares programs of Mica with peers, in alternation, and prints a table.

One case:    compare.py --mica PROGRAM --peer NAME LLAMA_BENCH MODEL.gguf [--peer ...]
Many cases:  compare.py --config FILE.json, which contains
             {"peers": {NAME: {"bench": LLAMA_BENCH, "flags": [...]}},
              "cases": [{"name": ..., "mica": PROGRAM, "flags": [...], "models": {NAME: MODEL.gguf}, "tests": [...],
                         "quality": {"reference": PROGRAM, "text": FILE}}]}
             where "flags" (of llama-bench, of PROGRAM bench), "tests" and "quality" may be absent. Instead of measuring it,
             "quality": {"published": [MODEL, ...], "format": ...} quotes the divergence of docs/quality.json for a row of these models.

A speed means little without the precision of the same program: with "quality", or --reference and --text, `mica eval` measures
its KL divergence from a reference, with the arithmetic of prefill and of decode, before the speeds. With --work, the same is measured
of each peer with llama-perplexity and llama-quantize from the folder of its LLAMA_BENCH; the reference is the peer's file in f32.

Each round runs each engine once, in a separate process, Mica alternately first and last; the first round is dropped. Figures are
medians over the rounds, ratios medians of the rounds' ratios. The memory's read bandwidth is measured just before and after Mica.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engines  # noqa: E402
import goals  # noqa: E402
import load  # noqa: E402
import report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import quality.engines as tools  # noqa: E402
from quality import published  # noqa: E402

LONG = 8192


def tests(gen):
    return [
        engines.Test("decode", f"decode {gen}", gen=gen, repeat=3),
        engines.Test("prefill", "prefill 512", prompt=512, repeat=2),
        engines.Test("batch", f"8 sequences at once, {gen} each", gen=gen, batch=8),
        engines.Test("deep", f"decode {gen // 2} at depth {LONG}", gen=gen // 2, depth=LONG),
        engines.Test("long", f"prefill {LONG}", prompt=LONG),
    ]


def say(text):
    print(text, file=sys.stderr, flush=True)


class Row:
    """A test of a case: samples by engine and round, or the reasons why there are none."""

    def __init__(self, test, names):
        self.test, self.samples, self.bandwidth, self.trouble = test, {name: {} for name in names}, {}, {}

    def give_up(self, name, state, error):
        self.trouble[name] = {"state": state, "message": str(error)}
        say(f"  {self.test.title}, {name}: {state}: {error}")

    def turn(self, name, engine, number):
        if name in self.trouble:
            return
        try:
            sample = engine.measure(self.test)
        except engines.Skipped as why:
            self.give_up(name, "skipped", why)
        except engines.Failed as why:
            self.give_up(name, "failed", why)
        else:
            say(f"  {self.test.title}, round {number}, {name}: {sample.tokens_per_s:.1f} tokens/s")
            if number > 0:
                self.samples[name][number] = sample


def measure_bandwidth(row, bandwidth):
    """None without the helper program, or if it has failed."""
    if bandwidth is None or "memory" in row.trouble:
        return None
    try:
        return bandwidth.measure()
    except engines.Failed as why:
        row.give_up("memory", "failed", why)
        return None


def measure_row(test, contenders, bandwidth, pairs):
    row = Row(test, contenders)
    for number in range(pairs + 1):
        # The order alternates, because the previous run affects temperature and page cache.
        for name, engine in sorted(contenders.items(), reverse=number % 2 == 0, key=lambda each: each[0] != "Mica"):
            if name != "Mica":
                row.turn(name, engine, number)
                continue
            around = [measure_bandwidth(row, bandwidth)]
            row.turn(name, engine, number)
            around.append(measure_bandwidth(row, bandwidth))
            if number > 0 and None not in around:
                row.bandwidth[number] = statistics.mean(around)
    return row


def contenders_of(case, config, args):
    """Engines by name, Mica first. One that cannot be run stays in the table as failed."""
    made = {}

    def add(name, make):
        try:
            made[name] = make()
        except engines.Failed as why:
            made[name] = Broken(str(why))

    add("Mica", lambda: engines.Mica(case["mica"], case.get("flags", []), args.threads, args.timeout))
    for name, peer in config["peers"].items():
        model = case["models"].get(name)
        if model is None:
            made[name] = Broken("the case names no model for it", engines.Skipped)
            continue
        add(name, lambda peer=peer, model=model: engines.LlamaBench(peer["bench"], model, peer.get("flags"),
                                                                     args.threads, args.timeout))
    return made


class Broken:
    """Replaces an engine that cannot be used."""

    def __init__(self, message, kind=engines.Failed):
        self.message, self.kind = message, kind

    def measure(self, _):
        raise self.kind(self.message)

    def version(self):
        return self.message


def peer_divergence(bench, model, text, args):
    """Like engines.divergence, by the peer's own tools. Decode is computed row by row (-ub 1)."""
    work = pathlib.Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    try:
        peer = tools.Llama(pathlib.Path(bench).parent, tools.Cache(work / "cache.json"), work, args.threads)
        measured = {rows: peer.evaluate(pathlib.Path(model), pathlib.Path(model), pathlib.Path(text), *options)
                    for rows, options in (("prefill", []), ("decode", ["-ub", "1"]))}
    except (tools.Failed, OSError) as why:
        raise engines.Failed(str(why)) from None
    return {rows: {"kl": figures["kl"], "same_top": figures["same_top"] / 100} for rows, figures in measured.items()}


def measure_quality(case, config, args, info):
    """KL divergences by engine and arithmetic of rows, or why there are none; None if not requested."""
    if "quality" not in case:
        return None
    quality, measured = case["quality"], {}
    if "published" in quality:
        rows = engines.prompt_rows(info)
        found = {name: published.figures_of(name, quality["format"], rows.split(" ")[0]) for name in quality["published"]}
        if absent := [name for name, figures in found.items() if not figures]:
            sys.exit(f"compare.py: docs/quality.json has no {quality['format']} of {', '.join(absent)}")
        return found

    def add(name, measure):
        try:
            measured[name] = measure()
        except engines.Failed as why:
            say(f"  KL divergence of {name}: failed: {why}")
            measured[name] = {"failed": str(why)}

    add("Mica", lambda: {rows: engines.divergence(args.eval, case["mica"], quality, args.threads, args.timeout, options)
                         for rows, options in (("prefill", []), ("decode", ["--as-decode"]))})
    for name, peer in config["peers"].items() if args.work else ():
        if model := case["models"].get(name):
            add(name, lambda peer=peer, model=model: peer_divergence(peer["bench"], model, quality["text"], args))
    return measured


def case_result(case, contenders, rows, begun, quality=None, quoted=None):
    """The entry of a case in a report: summaries of rows measured since `begun`, a load.Load."""
    return {"name": case["name"], "rows": rows, "load": begun.report(), "quality": quality, "quoted": quoted,
            "small": goals.is_small(info_of(contenders)), "versions": {name: engine.version() for name, engine in contenders.items()}}


def info_of(contenders):
    """What the program reports about itself, or nothing if it is missing."""
    return getattr(contenders["Mica"], "info", {})


def measure_case(case, config, bandwidth, args):
    say(case["name"])
    contenders = contenders_of(case, config, args)
    info = info_of(contenders)
    quality = measure_quality(case, config, args, info)
    wanted = args.tests or case.get("tests")
    begun = load.Load()
    rows = [report.summary(measure_row(test, contenders, bandwidth, args.pairs), info)
            for test in tests(args.gen) if not wanted or test.key in wanted]
    quoted = published.source() if "published" in case.get("quality", {}) else None
    return case_result(case, contenders, rows, begun, quality, quoted)


def config_of(args):
    if args.config:
        with open(args.config, encoding="utf-8") as f:
            return json.load(f)
    case = {"name": args.case or pathlib.Path(args.mica).name, "mica": args.mica,
            "flags": ["--huge-pages"] if args.huge_pages else [], "models": {name: model for name, _, model in args.peer}}
    if args.reference:
        case["quality"] = {"reference": args.reference, "text": args.text}
    return {"peers": {name: {"bench": bench} for name, bench, _ in args.peer}, "cases": [case]}


def parse(argv):
    keys = [test.key for test in tests(64)]
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = ap.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", metavar="FILE.json")
    source.add_argument("--mica", metavar="PROGRAM", help="a program that `mica compile` wrote")
    ap.add_argument("--peer", nargs=3, action="append", default=[], metavar=("NAME", "LLAMA_BENCH", "MODEL"))
    ap.add_argument("--case", help="the name of the one case; with --config, a pattern of the cases to run")
    ap.add_argument("--tests", type=lambda text: text.split(","), help="of " + ",".join(keys))
    ap.add_argument("--huge-pages", action="store_true",
                    help="Mica reads its weights into memory, as peers do that repack theirs (-rtr)")
    ap.add_argument("--pairs", type=int, default=7, help="rounds that count (default 7)")
    ap.add_argument("--gen", type=int, default=64, help="tokens to generate (default 64)")
    ap.add_argument("--threads", type=int, default=load.machine()["processors"],
                    help="of all engines (default: every processor, also where two share a core)")
    ap.add_argument("--timeout", type=float, default=900, help="seconds that one process may take")
    ap.add_argument("--bandwidth", metavar="MICA_BANDWIDTH", default=str(ROOT / "build/release/bin/mica-bandwidth"),
                    help="the helper that measures the memory; an empty text: do not")
    ap.add_argument("--reference", metavar="PROGRAM", help="what the KL divergence is measured from: the same weights in f32")
    ap.add_argument("--text", metavar="FILE", help="the text that it is measured on")
    ap.add_argument("--work", metavar="FOLDER", help="also measure the peers' KL divergence; holds their files and results")
    ap.add_argument("--eval", metavar="MICA", default=str(ROOT / "build/release/bin/mica"), help="the mica that measures it")
    ap.add_argument("--json", metavar="FILE", help="write everything that was measured")
    ap.add_argument("--brief", action="store_true", help="print one table of all cases")
    args = ap.parse_args(argv)
    unknown = sorted(set(args.tests or []) - set(keys))
    if unknown:
        ap.error(f"no such test: {', '.join(unknown)}")
    if bool(args.reference) != bool(args.text) or (args.reference and args.config):
        ap.error("--reference and --text go together, with --mica")
    if args.pairs < 1 or args.gen < 2:
        ap.error("--pairs must be at least 1, --gen at least 2")
    return args


def main(argv):
    args = parse(argv)
    config = config_of(args)
    bandwidth = engines.Bandwidth(args.bandwidth, args.threads, args.timeout) if args.bandwidth else None
    cases = [case for case in config["cases"]
             if not (args.config and args.case) or re.search(args.case, case["name"])]
    result = {"machine": load.machine(), "commit": load.commit(), "command": load.command_line(argv),
              "settings": {"threads": args.threads, "pairs": args.pairs, "gen": args.gen, "peers": config["peers"]}, "cases": []}
    for case in cases:
        result["cases"].append(measure_case(case, config, bandwidth, args))
        if args.json:  # after each case, so that an interrupted run keeps its results
            pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(report.brief(result) if args.brief else report.markdown(result))


if __name__ == "__main__":
    main(sys.argv[1:])
