#!/usr/bin/python3
"""Measures programs for several ranks, and the exchanges between ranks.

    ranks.py OUT [--mica MICA] [--shape NAME] [--weights bf16,int8,int4] [--links LINK,...] [--rounds 7] [--json FILE]

OUT is a folder for the programs, which `shapes.py` describes; existing ones are not created again. Measured are, with medians over rounds
in which everything is measured once, in alternating order:

- ids: whether two ranks generate the same tokens as one process, greedily from a prompt of random ids;
- memory: the peak resident size of each process, of two ranks and of one process, measured once;
- speeds: two ranks of one thread each against one process with two threads, on one machine and on two (tools/scale/two-machines.sh, which
  needs root). A link between these is `cable`, optionally followed by a limit of its rate (`cable 10gbit`) and by a latency that is added
  to each exchange (`cable +50us`): Linux may lack netem, so MpiDelay.c adds it;
- exchanges: the time of one gather of 16 KiB, and of the exchanges of a layer if columns are partitioned (four gathers) or every second
  matmul is partitioned along K (two reductions), for one row (decode), 32 (concurrent sequences) and 512 (prefill), between two and four
  ranks: by the exchange that programs use, and by MPI_Allgather and MPI_Allreduce. The exchange of programs only gathers; it reduces by
  gathering the rows of all ranks and adding them in the order of ranks, so that the sums of all ranks and runs are equal.

At least two processors are required. Ranks of a program yield if they are more than the processors; MPI's functions poll and then take
time slices of the scheduler, so they are measured with as many ranks as processors at most.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import engines  # noqa: E402
import load  # noqa: E402
import report  # noqa: E402
import shapes  # noqa: E402

sys.path.append(str(load.ROOT / "tests/tools"))
import resident  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BUILD = load.ROOT / "build/release"
TWO_MACHINES = load.ROOT / "tools/scale/two-machines.sh"
LINKS = ("shared memory", "cable", "cable 10gbit", "cable 1gbit")
#: A link, its rate and its latency.
LINK = re.compile(r"shared memory|cable(?: ([0-9]+[kmg]?bit))?(?: \+([0-9]+)us)?")
#: The largest size of a rank's process, relative to one process.
MEMORY_GOAL = 0.55
TESTS = (engines.Test("decode", "decode", gen=64, repeat=3), engines.Test("prefill", "prefill 512", prompt=512, repeat=2))
ONE = "one process"
PARTS = ("exchanges", "ids", "memory", "speeds")
#: Numbers of ids of the prompt, more than a chunk of prefill, and of those that are generated.
PROMPT_IDS, NEW_IDS = 300, 32
#: Bytes of a row of the gather that has a goal, and the goal in microseconds.
SINGLE, SINGLE_GOAL = 16384, 10
SINGLE_TITLE = f"one gather of {SINGLE >> 10} KiB"
#: The minimum ratio to one process, by link and then by weights or test.
GOALS = {"shared memory": {"bf16": 0.93, "int8": 0.93, "int4": 0.93, "prefill": 0.93},
         "cable": {"bf16": 0.85, "int8": 0.85, "int4": 0.75}}


def starter(link, mpi, ranks, folder=None):
    """The command that starts ranks on a link; `folder` has what build_delays makes, which links with a latency need."""
    if link == "shared memory":
        flags = ["--allow-run-as-root", "--bind-to", "none", "--oversubscribe"] if mpi == "openmpi" else []
        return [f"mpirun.{mpi}", *flags, "-n", str(ranks)]
    rate, delay = LINK.fullmatch(link).groups()
    added = ["/usr/bin/env", f"LD_PRELOAD={delay_of(folder, mpi)}", f"MICA_DELAY_US={delay}"] if delay else []
    return [*added, str(TWO_MACHINES), "--mpi", mpi, "-n", str(ranks), *(["--rate", rate] if rate else [])]


def delay_of(folder, mpi):
    return folder / f"delay-{mpi}.so"


def version(mpi):
    """The first line that has a version, of an implementation's mpirun."""
    said = subprocess.run([f"mpirun.{mpi}", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"[0-9]+\.[0-9]+[.0-9a-z]*", said)
    return found.group() if found else "unknown"


def build_delays(folder, args):
    """What adds latency, if a link needs it."""
    folder.mkdir(exist_ok=True)
    for mpi in args.mpi if any("+" in link for link in args.links) else ():
        # Without MPI's libraries: programs that do not use MPI, such as the shell of a script, are started with it as well.
        made = folder / f"delay-{mpi}.o"
        subprocess.run([f"mpicc.{mpi}", "-O2", "-Wall", "-Werror", "-fPIC", "-c", HERE / "MpiDelay.c", "-o", made], check=True)
        subprocess.run(["cc", "-shared", "-Wl,-z,lazy", made, "-o", delay_of(folder, mpi)], check=True)


class Ranks(engines.Mica):
    """A program for one rank or several; `threads` are those of each."""

    def __init__(self, start, program, threads, timeout):
        super().__init__(program, [], threads, timeout)
        self.start = start

    def bench(self, repeat):
        return [*self.start, *super().bench(repeat)]

    def share_of_peak(self, test):
        return 0.0  # takes another run, and is that of one rank


class Tools:
    """The programs that measure exchanges, in a folder with the plug-ins."""

    def __init__(self, folder, implementations):
        self.folder = folder
        for path in (BUILD / "bin/mica-rank-benchmarks", *(BUILD / f"lib/mica/mica-mpi-{mpi}.so" for mpi in implementations)):
            if not path.exists():
                sys.exit(f"ranks.py: needs {path}; build it with `ninja -C {BUILD} mica mica-rank-benchmarks`")
            shutil.copy(path, self.folder)
        for mpi in implementations:
            subprocess.run([f"mpicc.{mpi}", "-O2", HERE / "MpiBenchmarks.c", "-o", self.folder / f"mpi-{mpi}"], check=True)

    def program(self, by, mpi):
        return self.folder / ("mica-rank-benchmarks" if by == "mica" else f"mpi-{mpi}")


def programs(out, args):
    """(weights, program of one process, program of two ranks)"""
    for weights in args.weights:
        yield (weights, shapes.program(args.shape, weights, out, args, "-1-rank"),
               shapes.program(args.shape, weights, out, args, "-2-ranks", ("--shard", "tensor=2")))


def alternate(contenders, rounds, turn):
    """Calls turn(name, contender, round) in rounds 0 to `rounds`, in alternating order; round 0 is a warm-up."""
    for number in range(rounds + 1):
        for name, contender in sorted(contenders.items(), reverse=number % 2 == 0):
            turn(name, contender, number)


def measure_ids(weights, one, two, args, folder):
    """Whether the ids of ranks, on the links without a limit, are those of one process."""
    vocab = shapes.SHAPES[args.shape]["vocab_size"]
    tokens = ",".join(str(each) for each in random.Random(1).choices(range(vocab), k=PROMPT_IDS))
    arguments = ["--tokens", tokens, "-n", str(NEW_IDS), "--temperature", "0", "--ignore-eos", "--print-tokens"]

    contenders = {ONE: ([], one, 2)}
    for link in (link for link in args.links if link in ("shared memory", "cable")):
        for mpi in args.mpi:
            contenders[link, mpi] = starter(link, mpi, 2, folder), two, 1
    found, trouble = {}, {}
    for key, (start, program, threads) in contenders.items():
        try:
            status, out, err = engines.execute([*start, str(program), *arguments, "--threads", str(threads)], args.timeout)
            if status:
                raise engines.Failed(f"exit status {status}: {engines.last_line(err)}")
            found[key] = [int(each) for each in out.split()]
            if len(found[key]) != NEW_IDS:
                raise engines.Failed(f"{len(found[key])} ids instead of {NEW_IDS}")
        except (engines.Failed, ValueError) as why:
            trouble[key] = str(why)
    for link, mpi in list(contenders)[1:]:
        why = trouble.get(ONE) or trouble.get((link, mpi))
        equal = None if why else found[link, mpi] == found[ONE]
        compare.say(f"{weights}, ids, {link}, {mpi}: {why or ('equal' if equal else 'different')}")
        yield {"weights": weights, "link": link, "mpi": mpi, "prompt": PROMPT_IDS, "generated": NEW_IDS, "equal": equal, "trouble": why}


def measure_memory(weights, one, two, args):
    """The sizes of processes that decode, VmHWM of Linux, which includes what MPI needs."""
    sizes = {}
    for name, start, program, threads in ((ONE, [], one, 2), *((mpi, starter("shared memory", mpi, 2), two, 1) for mpi in args.mpi)):
        engine = Ranks(start, program, threads, args.timeout)
        sizes[name] = peaks_of(engine.command(engines.Test("memory", "", gen=32, depth=512)), program, args.timeout)
        compare.say(f"{weights}, memory, {name}: {', '.join(f'{size / 1e6:.0f} MB' for size in sizes[name]) or 'failed'}")
        yield {"weights": weights, "mpi": "" if name == ONE else name, "bytes": sizes[name], "goal": None if name == ONE else MEMORY_GOAL,
               "ratio": max(sizes[name]) / max(sizes[ONE]) if sizes[name] and sizes[ONE] else None}


def peaks_of(command, program, timeout):
    """The largest size of each process of a program that a command starts, the largest one first; nothing if it fails."""
    peaks, end = {}, time.monotonic() + timeout
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None:
            if time.monotonic() > end:
                run.kill()
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if os.path.samefile(process / "exe", program):
                        peaks[process.name] = max(peaks.get(process.name, 0), resident.of_process(process.name).get("VmHWM", 0))
                except OSError:
                    pass
            time.sleep(0.02)
    return sorted(peaks.values(), reverse=True) if run.returncode == 0 else []


def measure_speeds(weights, one, two, args, folder):
    links = [(link, mpi) for link in args.links for mpi in (args.mpi if link == "cable" else args.mpi[:1])]
    contenders = {ONE: Ranks([], one, 2, args.timeout)}
    for link, mpi in links:
        contenders[f"{link}, {mpi}"] = Ranks(starter(link, mpi, 2, folder), two, 1, args.timeout)
    for test in TESTS:
        begun = load.Load()
        row = compare.Row(test, contenders)
        compare.say(f"{weights}")
        alternate(contenders, args.rounds, row.turn)
        speeds = {name: {number: sample.tokens_per_s for number, sample in samples.items()} for name, samples in row.samples.items()}
        for link, mpi in [("", ""), *links]:
            name = f"{link}, {mpi}" if link else ONE
            yield {"weights": weights, "test": test.key, "link": link or ONE, "mpi": mpi,
                   "tokens_per_s": report.spread(speeds[name].values()),
                   "ratio": report.pairwise(speeds[name], speeds[ONE]), "goal": goal_of(link, weights, test.key),
                   "trouble": row.trouble.get(name), "load": begun.report(),
                   "weight_bytes": contenders[name].info["manifest"]["weight_bytes"]}


def layer(shape, weights, rows, kind):
    """The exchanges of a layer, as an argument: bytes of rows. What quantized matmuls read is f32, see docs/scale.md."""
    heads, hidden, inner = shape["num_attention_heads"] * shape["head_dim"], shape["hidden_size"], shape["intermediate_size"]
    narrow = 2 if weights == "bf16" else 4
    sizes = (heads * narrow, hidden * 4, inner * narrow, hidden * 4) if kind == "gather" else (hidden * 4, hidden * 4)
    return f"{kind}:" + ",".join(str(rows * size) for size in sizes)


def exchanges(shape):
    """What is measured: (name, argument, repetitions)"""
    yield SINGLE_TITLE, f"gather:{SINGLE}", 1000
    for kind, title in (("gather", "four gathers"), ("reduce", "two reductions")):
        for weights in ("bf16", "int8") if kind == "gather" else ("bf16",):
            words = f"{title}, {'bf16 and f32' if weights == 'bf16' else 'f32'}" if kind == "gather" else f"{title}, f32"
            for rows, repeat in ((1, 200), (32, 50), (512, 10)):
                yield words + (f", {rows} rows" if rows > 1 else ""), layer(shape, weights, rows, kind), repeat


def measure_exchanges(shape, tools, args):
    """The exchanges of each contender: (link, by, mpi, ranks)."""
    contenders, processors = {}, load.machine()["processors"]
    for ranks in args.ranks:
        for link in args.links:
            for by in ("mica", "mpi") if ranks <= processors else ("mica",):
                # All of them have the same exchange through shared memory.
                for mpi in args.mpi[:1] if (by, link) == ("mica", "shared memory") else args.mpi:
                    contenders[(link, by, mpi, ranks)] = [*starter(link, mpi, ranks, tools.folder), str(tools.program(by, mpi))]
    wanted = list(exchanges(shape))
    found = {key: {name: {} for name, _, _ in wanted} for key in contenders}
    trouble = {}
    arguments = [text for _, argument, repeat in wanted for text in (str(max(1, repeat // args.hasty)), argument)]

    def turn(key, command, number):
        if key in trouble:
            return
        try:
            status, out, err = engines.execute([*command, *arguments], args.timeout)
            if status:
                raise engines.Failed(f"exit status {status}: {engines.last_line(err)}")
            results = [json.loads(line) for line in out.splitlines() if line.strip()]
            if [each["exchange"] for each in results] != arguments[1::2]:
                raise engines.Failed(f"unexpected output: {out[:200]}")
        except (engines.Failed, ValueError, KeyError) as why:
            trouble[key] = str(why)
            compare.say(f"  {key}: failed: {why}")
            return
        compare.say(f"  round {number}, {key}: {results[0]['median_us']:.1f} us for {wanted[0][0]}")
        if number > 0:
            for (name, _, _), result in zip(wanted, results, strict=True):
                found[key][name][number] = result

    begun = load.Load()
    compare.say("exchanges")
    alternate(contenders, args.rounds, turn)
    condition = begun.report()
    for (link, by, mpi, ranks), by_name in found.items():
        for name, argument, repeat in wanted:
            rounds = by_name[name].values()
            sizes = [int(size) for size in argument.partition(":")[2].split(",")]
            yield {"link": link, "by": by, "mpi": mpi, "ranks": ranks, "exchange": name, "latencies": len(sizes), "bytes": sum(sizes),
                   "repeat": max(1, repeat // args.hasty),
                   "goal": SINGLE_GOAL if (name, link, by, ranks) == (SINGLE_TITLE, "shared memory", "mica", 2) else None,
                   "median_us": report.spread(each["median_us"] for each in rounds),
                   "mean_us": report.spread(each["mean_us"] for each in rounds),
                   "trouble": trouble.get((link, by, mpi, ranks)), "load": condition}


def goal_of(link, weights, test):
    """The minimum ratio, or None."""
    return GOALS.get(link, {}).get(test if test == "prefill" else weights)


def speed_table(speeds):
    if not speeds:
        return []
    lines = ["| weights | test | link | tokens/s | ratio | goal |", "|---|---|---|---|---|---|"]
    for each in speeds:
        goal, ratio = each["goal"], each["ratio"]
        verdict = "-" if goal is None else f">= {goal}: " + ("-" if not ratio else "reached" if ratio["median"] >= goal else "short")
        link = each["link"] + (f", {each['mpi']}" if each["mpi"] else "")
        lines.append(f"| {each['weights']} | {each['test']} | {link} | {report.speed(each['tokens_per_s'])} | "
                     f"{report.figure(ratio, 2, 'x') if each['mpi'] else '-'} | {verdict} |")
    return lines


def exchange_table(measured):
    """Microseconds; a column for each number of ranks."""
    if not measured:
        return []
    lines = ["| exchange | bytes | link | by | 2 ranks, us | 4 ranks, us |", "|---|---|---|---|---|---|"]
    rows = {}
    for each in measured:
        key = (each["exchange"], each["bytes"], each["link"], f"Mica, {each['mpi']}" if each["by"] == "mica" else each["mpi"])
        rows.setdefault(key, {})[each["ranks"]] = report.figure(each["median_us"], 1)
    order = {name: index for index, name in enumerate(dict.fromkeys(each["exchange"] for each in measured))}
    for key, by_ranks in sorted(rows.items(), key=lambda row: order[row[0][0]]):
        lines.append("| " + " | ".join([*map(str, key), by_ranks.get(2, "-"), by_ranks.get(4, "-")]) + " |")
    return lines


def memory_table(measured):
    return ["| weights | memory of | MB of each process | ratio | goal |", "|---|---|---|---|---|",
            *(f"| {each['weights']} | {each['mpi'] or ONE} | {', '.join(f'{size / 1e6:.0f}' for size in each['bytes'])} | "
              f"{'-' if each['ratio'] is None else format(each['ratio'], '.2f')} | "
              f"{memory_verdict(each)} |" for each in measured)] if measured else []


def memory_verdict(each):
    if each["goal"] is None or each["ratio"] is None:
        return "-"
    return f"<= {each['goal']}: " + ("reached" if each["ratio"] <= each["goal"] else "short")


def ids_table(measured):
    return ["| weights | link | ids after a prompt of " + str(PROMPT_IDS) + " |", "|---|---|---|",
            *(f"| {each['weights']} | {each['link']}, {each['mpi']} | "
              f"{'-' if each['equal'] is None else 'equal' if each['equal'] else 'different'} |" for each in measured)] if measured else []


def markdown(result):
    machine = result["machine"]
    implementations = ", ".join(f"{name} {found}" for name, found in result["mpi"].items())
    condition = "; ".join(f"{part}: other processes used {values['others']:.2f} processors, steal time {values['stolen']:.2f}"
                          for part, values in result["load"].items())
    single = [each for each in result["exchanges"] if each["goal"] and each["median_us"]]
    lines = [f"`{result['command']}`, commit {result['commit']}: {machine['cpu']}, {machine['processors']} processors, Linux "
             f"{machine['kernel']}, {implementations}; {result['shape']}; medians of {result['rounds']} alternating rounds "
             "(minimum - maximum).", ""]
    for part in ([condition] if condition else [], speed_table(result["speeds"]), exchange_table(result["exchanges"]),
                 ids_table(result["ids"]), memory_table(result["memory"])):
        lines += [*part, ""] if part else []
    for each in single:
        lines += [f"Goal of {each['exchange']} through shared memory, median of {each['repeat']}, <= {each['goal']} us: "
                  + ("reached" if each["median_us"]["median"] <= each["goal"] else "short"), ""]
    troubles = {json.dumps(each["trouble"]) for part in ("speeds", "exchanges", "ids") for each in result[part] if each["trouble"]}
    return "\n".join(lines + [f"- {trouble}" for trouble in sorted(troubles)])


def worst_load(measured):
    loads = [each["load"] for each in measured]
    return {key: max((one[key] for one in loads), default=0) for key in ("others", "stolen", "seconds")}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mica", default=str(BUILD / "bin/mica"))
    parser.add_argument("--shape", default="llama-3.2-1b", choices=[name for name, shape in shapes.SHAPES.items()])
    parser.add_argument("--weights", type=lambda text: text.split(","), default=["bf16", "int8", "int4"])
    parser.add_argument("--mpi", type=lambda text: text.split(","), default=["openmpi", "mpich"])
    parser.add_argument("--links", type=lambda text: text.split(","), default=list(LINKS), help=f"default: {','.join(LINKS)}")
    parser.add_argument("--ranks", type=lambda text: [int(each) for each in text.split(",")], default=[2, 4],
                        help="numbers of ranks of the exchanges (default: 2,4)")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=f"default: {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (default 7)")
    parser.add_argument("--hasty", type=int, default=1, metavar="N", help="repeat exchanges N times less often")
    parser.add_argument("--timeout", type=float, default=120,
                        help="seconds that one run may take; ranks that did not end are not run again")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything that was measured")
    parser.set_defaults(max_seq=1024)
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.hasty < 1:
        parser.error("--rounds and --hasty must be at least 1")
    if unknown := (set(args.mpi) - {"openmpi", "mpich"} | set(args.parts) - set(PARTS)
                   | {link for link in args.links if not LINK.fullmatch(link)}):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return args


def main(argv):
    args = parse(argv)
    # Ranks of a test may be started by root, as in a container.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    shape = {"head_dim": shapes.SHAPES[args.shape]["hidden_size"] // shapes.SHAPES[args.shape]["num_attention_heads"],
             **shapes.SHAPES[args.shape]}
    result = {"machine": load.machine(), "commit": load.commit(), "command": load.command_line(argv), "shape": args.shape,
              "mpi": {mpi: version(mpi) for mpi in args.mpi}, "rounds": args.rounds, "load": {}, "speeds": [], "exchanges": [],
              "ids": [], "memory": []}
    folder = out / "exchanges"
    build_delays(folder, args)

    def keep(part, measured):
        result[part] += measured
        if measured and part not in ("ids", "memory"):  # which do not depend on it
            result["load"][part] = worst_load(result[part])
        if args.json:  # after each part, so that an interrupted run keeps its results
            args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    if "exchanges" in args.parts:
        keep("exchanges", list(measure_exchanges(shape, Tools(folder, args.mpi), args)))
    for found in list(programs(out, args)) if {"ids", "memory", "speeds"} & set(args.parts) else ():
        if "ids" in args.parts:
            keep("ids", list(measure_ids(*found, args, folder)))
        if "memory" in args.parts:
            keep("memory", list(measure_memory(*found, args)))
        if "speeds" in args.parts:
            keep("speeds", list(measure_speeds(*found, args, folder)))
    print(markdown(result))


if __name__ == "__main__":
    main(sys.argv[1:])
