#!/usr/bin/env python3
"""Measures models with recurrent layers against a peer with the same weights, and prints tables.

    hybrids.py OUT --mica MICA --peer NAME LLAMA_BENCH [--only PATTERN] [--measure decode,prefill,depth,rewind,mtp] [--json FILE]

OUT is a folder for the inputs, created by shapes.py with random weights: the shapes of Qwen3.5 4B and Granite 4.0 H Micro. Measured in
alternation, as by compare.py, in int8 and int4 (the peer: Q8_0, Q4_0):

    decode    32 tokens, by the whole model; with --periods by one period of the layers
    prefill   a prompt of 2048 tokens, by one period of the layers; with --whole by the whole model
    depth     only Mica, by one period of the layers in int4: decode after 32768 positions and after 512, in relation to the bytes read
    rewind    only Mica, by the layers of the whole model with small heads: whether passes that verify drafts of up to 8 tokens, and
              reject some of them, generate the tokens of passes without drafts, and how many tokens are computed after an edit of the
              last turn of a conversation of 32768, with as many checkpoints as the whole model has by default on this machine
    mtp       only Mica, Qwen3.5 4B in int4: what a pass costs that drafts tokens with the multi-token prediction head and verifies them.
              With random weights hardly any draft is accepted, so the cost is measured, not a speedup

The whole models in both formats take 25 GB on disk with --delete-folders, 9 GB more while they are created.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import engines  # noqa: E402
import load  # noqa: E402
import report  # noqa: E402
import shapes  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ("decode", "prefill", "depth", "rewind", "mtp")
#: What a program may take in time over its bytes when its cache has grown, and what an edit may compute.
MAX_OVER_BYTES, MAX_COMPUTED = 1.1, 512
#: Tokens changed at the end of a conversation.
EDITS = (1, 60, 100, 400)
DRAFTS, TOKENS, TEMPERATURE = 8, 256, 0.1
#: Tokens that the multi-token prediction head drafts per pass.
MTP_DRAFTS = (1, 2, 4)


def compared(shape, test, args):
    """The rows of a test with the peer, one case per format."""
    cases = [shapes.case_of(shape, weights, args.out, args) for weights in args.weights]
    config = shapes.config_of(cases, args.peer)
    bandwidth = engines.Bandwidth(args.bandwidth, args.threads, args.timeout)
    for case in cases:
        contenders = compare.contenders_of(case, config, args)
        begun = load.Load()
        row = compare.measure_row(test, contenders, bandwidth, args.pairs)
        yield compare.case_result(case, contenders, [report.summary(row, compare.info_of(contenders))], begun)


def over_bytes(near, far):
    """By how much more than its bytes a token takes more time at the larger depth; both are engines.Sample."""
    seconds = near.tokens_per_s / far.tokens_per_s
    read = seconds * (far.gb_per_s / near.gb_per_s)
    return {"time": seconds, "bytes": read, "time over bytes": seconds / read}


def depth(shape, args):
    case = shapes.case_of(shape, "int4", args.out, args, with_file=False)
    engine = engines.Mica(case["mica"], [], args.threads, args.timeout)
    begun = load.Load()
    near, far = (engine.measure(engines.Test("depth", "", gen=32, depth=positions, repeat=args.pairs)) for positions in (512, args.depth))
    found = {"name": case["name"], "depth": args.depth, "tokens_per_s": [near.tokens_per_s, far.tokens_per_s],
             "runs": [near.runs, far.runs], **over_bytes(near, far), "load": begun.report()}
    return {**found, "reached": found["time over bytes"] <= MAX_OVER_BYTES}


def served(program, *options):
    """A server that is ready: its process and its port."""
    process = subprocess.Popen([program, "serve", "--port", "0", "--sequences", "1", *map(str, options)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
    for line in process.stderr:
        if found := re.search(r" at http://[\d.]+:(\d+)", line):
            return process, int(found[1])
    raise engines.Failed(f"{program} serve has ended with status {process.wait()}")


def computed(port, prompt, timeout):
    """How many tokens of a prompt, a list of ids, the server computes; it answers with 16."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 16, "temperature": 0, "ignore_eos": True}),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise engines.Failed(f"the server answers {answer.status}: {text[:300]!r}")
    usage = json.loads(text)["usage"]
    return usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]


def edits(program, checkpoints, args):
    """Tokens computed per number of changed ones, and in the beginning; with a budget of that many checkpoints."""
    info = engines.json_of([program, "info", "--json"], args.timeout)
    rng = random.Random(1)
    text = [rng.randrange(3, 1000) for _ in range(args.depth)]
    process, port = served(program, "--threads", args.threads, "--checkpoint-bytes", checkpoints * info["checkpoint_bytes"])
    try:
        found = {"checkpoints": checkpoints, "whole": computed(port, text, args.timeout)}
        for count in EDITS:
            changed = text[:-count] + [3 + (token + 1) % 997 for token in text[-count:]]
            found[f"edit of {count}"] = computed(port, changed, args.timeout)
    finally:
        process.kill()
        process.wait()
    return found


def drafts(program, args):
    """What the program reports of the drafts in a text that repeats itself and then differs, and whether it generates the tokens of a run
    without drafts: it fails if it has lost the positions before a rejected draft."""
    rng = random.Random(2)
    period = [rng.randrange(3, 1000) for _ in range(32)]
    command = [program, "--tokens", ",".join(map(str, period * 16)), "-n", str(TOKENS), "--ignore-eos", "--temperature", str(TEMPERATURE),
               "--seed", "1", "--threads", str(args.threads), "--json"]
    plain, drafting = (engines.json_of([*command, *more], args.timeout) for more in ((), ("--lookup", str(DRAFTS))))
    same = plain["sequences"][0]["tokens"] == drafting["sequences"][0]["tokens"]
    return {**drafting["lookup"], "tokens": TOKENS, "same": same}


def checkpoints_of(shape, args):
    """The default number of checkpoints of the whole model: an eighth of the memory available besides its weights."""
    whole = engines.json_of([shapes.case_of(shape, "int8", args.out, args)["mica"], "info", "--json"], args.timeout)
    with open("/proc/meminfo", encoding="utf-8") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    besides = available - whole["manifest"]["cost"]["weight_bytes_per_token"]
    return max(1, int(besides / 8 // whole["checkpoint_bytes"]))


def rewind(shape, args):
    program = shapes.case_of(shape + "-narrow", "int8", args.out, args, with_file=False)["mica"]
    checkpoints = args.checkpoints or checkpoints_of(shape, args)
    found = {"name": shape, "depth": args.depth, "drafts": drafts(program, args), "edits": edits(program, checkpoints, args)}
    largest = max(number for key, number in found["edits"].items() if key.startswith("edit"))
    return {**found, "reached": largest <= MAX_COMPUTED and rejects_without_cost(found["drafts"])}


def rejects_without_cost(drafts):
    """Whether drafted tokens were rejected, with the same tokens as without drafts and no pass but those that yield them: each yields one
    token and the drafted ones that it accepts, after the first token, which the prompt yields."""
    return drafts["drafted"] > drafts["accepted"] and drafts["same"] and drafts["calls"] + drafts["accepted"] == drafts["tokens"] - 1


def program_with_head(shape, args):
    return shapes.program(shape, "int4", args.out, args, "-mtp", ("--keep-mtp",))


def mtp(shape, args):
    """Seconds of passes with drafts in relation to those without: the tokens that a pass must yield to be worthwhile."""
    program = program_with_head(shape, args)
    begun, found = load.Load(), {}
    for drafts in MTP_DRAFTS:
        done = engines.json_of([program, "bench", "--prompt", "0", "--gen", "32", "--repeat", str(args.pairs), "--mtp", str(drafts), "--threads",
                                str(args.threads), "--json"], args.timeout)
        plain, drafting = done["results"]
        found[str(drafts)] = drafting["mtp"]["seconds_per_call"] * plain["tokens_per_s"]
    return {"name": program.name, "cost": found, "load": begun.report()}


def markdown(result):
    lines = [report.markdown(result)]
    if result["depth"]:
        lines += ["| decode, int4 | tokens/s after 512 | after the depth | time | bytes | time over bytes | goal |", "|---" * 7 + "|"]
    for each in result["depth"]:
        near, far = each["tokens_per_s"]
        lines.append(f"| {each['name']}, depth {each['depth']} | {near:.1f} | {far:.1f} | {each['time']:.2f}x | {each['bytes']:.2f}x | "
                     f"{each['time over bytes']:.2f} | <= {MAX_OVER_BYTES}: {'reached' if each['reached'] else 'short'} |")
    if result["rewind"]:
        lines += ["", f"| rewind | drafted, accepted, passes for {TOKENS} tokens | tokens computed after edits of "
                  f"{', '.join(map(str, EDITS))} | checkpoints | goal |", "|---" * 5 + "|"]
    for each in result["rewind"]:
        draft, edit = each["drafts"], each["edits"]
        lines.append(f"| {each['name']}, {each['depth']} tokens | {draft['drafted']}, {draft['accepted']}, {draft['calls']} | "
                     f"{', '.join(str(edit[f'edit of {n}']) for n in EDITS)} | {edit['checkpoints']} | "
                     f"{'same tokens; ' if 'same' in draft else ''}<= {MAX_COMPUTED}: {'reached' if each['reached'] else 'short'} |")
    if result["mtp"]:
        lines += ["", "| time of a pass with drafts over one without | " + " | ".join(f"{n} drafted" for n in MTP_DRAFTS) + " |",
                  "|---" * (len(MTP_DRAFTS) + 1) + "|"]
    for each in result["mtp"]:
        lines.append(f"| {each['name']} | " + " | ".join(f"{each['cost'][str(n)]:.2f}" for n in MTP_DRAFTS) + " |")
    return "\n".join(lines)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shapes.add_options(parser)
    parser.set_defaults(weights=["int8", "int4"])
    parser.add_argument("--only", choices=list(shapes.HYBRIDS), action="append", help="the shapes (default: all)")
    parser.add_argument("--measure", type=lambda text: text.split(","), default=list(WORK), help="of " + ",".join(WORK))
    parser.add_argument("--make", action="store_true", help="only create the inputs")
    parser.add_argument("--whole", action="store_true", help="measure prefill by the whole models")
    parser.add_argument("--periods", action="store_true", help="measure decode by one period of the layers")
    parser.add_argument("--pairs", type=int, default=3, help="rounds that count (default 3)")
    parser.add_argument("--depth", type=int, default=32768)
    parser.add_argument("--checkpoints", type=int, help="for rewind (default: as many as the whole model has)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one process may take")
    parser.add_argument("--bandwidth", default=str(ROOT / "build/release/bin/mica-bandwidth"))
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured")
    args = parser.parse_args(argv)
    if unknown := set(args.measure) - set(WORK):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    if args.whole and args.periods:
        parser.error("--whole and --periods exclude each other")
    if args.pairs < 1 or args.depth <= max(EDITS):
        parser.error(f"--pairs must be at least 1, --depth more than {max(EDITS)}")
    args.out = shapes.out_of(args, parser)
    args.max_seq = args.depth + 512
    return args


def has_head(shape):
    return "mtp_num_hidden_layers" in shapes.SHAPES[shape]


def make(args):
    """Creates the inputs, so that measuring takes no more than measuring."""
    wanted = set(args.measure)
    uses = {"": set() if args.periods else {"decode"}, "-period": {"depth"} | ({"decode"} if args.periods else set()), "-narrow": {"rewind"}}
    uses["" if args.whole else "-period"].add("prefill")
    for shape in args.only or shapes.HYBRIDS:
        if "mtp" in wanted and has_head(shape):
            program_with_head(shape, args)
        for variant, works in uses.items():
            if wanted & works:
                shapes.cases_of(shape + variant, args.out, args)


def main(argv):
    args = parse(argv)
    if args.make:
        make(args)
        return
    result = {"machine": load.machine(), "commit": load.commit(), "command": load.command_line(argv),
              "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
              "settings": {"threads": args.threads, "pairs": args.pairs, "peers": dict(args.peer)}, "cases": [], "depth": [], "rewind": [], "mtp": []}

    def keep(name, found):
        result[name].append(found)
        if args.json:  # after each measurement, so that an interrupted run keeps its results
            pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    for shape in args.only or shapes.HYBRIDS:
        compare.say(shape)
        if "decode" in args.measure:
            for case in compared(shape + ("-period" if args.periods else ""), engines.Test("decode", "decode 32", gen=32), args):
                keep("cases", case)
        if "prefill" in args.measure:
            for case in compared(shape + ("" if args.whole else "-period"), engines.Test("prefill", "prefill 2048", prompt=2048), args):
                keep("cases", case)
        if "depth" in args.measure:
            keep("depth", depth(shape + "-period", args))
        if "rewind" in args.measure:
            keep("rewind", rewind(shape, args))
        if "mtp" in args.measure and has_head(shape):
            keep("mtp", mtp(shape, args))
    print(markdown(result))


if __name__ == "__main__":
    main(sys.argv[1:])
