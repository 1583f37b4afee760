#!/usr/bin/python3
"""Compares two ranks with llama.cpp's RPC backend on one machine, with the same weights.

    rpc_peer.py OUT --peer FOLDER [--mica MICA] [--rounds 5] [--json FILE] GGUF...

FOLDER has `ggml-rpc-server` and `llama-bench` of a llama.cpp that was built with -DGGML_RPC=ON. Each GGUF file is compiled for two ranks,
OUT/NAME-2; existing programs are not compiled again. Measured in alternating order: two ranks of one thread each, which exchange through
shared memory, and llama-bench with two RPC servers of one thread each on the loopback interface, which have the layers of the model
(-ngl 99), one half each. llama.cpp computes one after the other, so a processor is always idle; it has no tensor parallelism over RPC.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import engines  # noqa: E402
import load  # noqa: E402
import ports  # noqa: E402
import ranks  # noqa: E402
import report  # noqa: E402
import shapes  # noqa: E402

TESTS = ranks.TESTS
MICA, PEER = "Mica", "llama.cpp"
#: The minimum ratio.
GOAL = 1.5
#: Seconds within which a server listens.
PATIENCE = 30


class Rpc(engines.LlamaBench):
    """llama-bench, whose model is on RPC servers."""

    def __init__(self, binary, model, addresses, timeout):
        super().__init__(binary, model, ["-fa", "1", "-ngl", "99", "--rpc", ",".join(addresses)], 1, timeout)
        if not self.knows("--rpc"):
            raise engines.Failed(f"{binary} has no --rpc: build llama.cpp with -DGGML_RPC=ON")

    def measure(self, test):
        sample = super().measure(test)
        if "RPC" not in self.backends.split(","):
            raise engines.Failed(f"llama-bench used {self.backends}, not the RPC servers")
        return sample


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def servers(binary, count):
    """The addresses of running RPC servers."""
    listening = ports.free_ports(count)
    started = []
    try:
        for port in listening:
            started.append(subprocess.Popen([binary, "-H", "127.0.0.1", "-p", str(port), "-t", "1"], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        end = time.monotonic() + PATIENCE
        while not all(map(listens, listening)):
            if any(each.poll() is not None for each in started) or time.monotonic() > end:
                raise engines.Failed(f"{binary} does not listen at its port")
            time.sleep(0.1)
        yield [f"127.0.0.1:{port}" for port in listening]
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def program_of(gguf, out, mica):
    """The file, compiled for two ranks."""
    def compiled(part):
        subprocess.run([mica, "compile", gguf, "--max-seq", "1024", "--shard", "tensor=2", "-o", part], check=True)
    return shapes.once(out / f"{gguf.stem}-2", compiled)


def binary_of(folder, *names):
    """The first of these programs that exists."""
    found = next((folder / name for name in names if (folder / name).exists()), None)
    return found or sys.exit(f"rpc_peer.py: {folder} has no {names[0]}; build the target {names[0]} of llama.cpp with -DGGML_RPC=ON")


def measure(gguf, args):
    """A row of the table for each test."""
    program = program_of(gguf, args.out.resolve(), args.mica)
    for test in TESTS:
        begun = load.Load()
        row = compare.Row(test, (MICA, PEER))
        compare.say(gguf.name)
        with servers(binary_of(args.peer, "ggml-rpc-server", "rpc-server"), 2) as addresses:
            contenders = {MICA: ranks.Ranks(ranks.starter("shared memory", args.mpi, 2), program, 1, args.timeout),
                          PEER: Rpc(binary_of(args.peer, "llama-bench"), gguf, addresses, args.timeout)}
            ranks.alternate(contenders, args.rounds, row.turn)
        speeds = {name: {number: sample.tokens_per_s for number, sample in samples.items()} for name, samples in row.samples.items()}
        # After the servers have ended: their time is that of children.
        yield {"file": gguf.name, "test": test.key, "title": test.title,
               "tokens_per_s": {name: report.spread(by_round.values()) for name, by_round in speeds.items()},
               "ratio": report.pairwise(speeds[MICA], speeds[PEER]), "trouble": row.trouble, "load": begun.report(),
               "versions": {name: contender.version() for name, contender in contenders.items()}}


def markdown(result):
    machine, rows = result["machine"], result["rows"]
    worst = ranks.worst_load(rows)
    lines = [f"`{result['command']}`, commit {result['commit']}: {machine['cpu']}, {machine['processors']} processors, Linux "
             f"{machine['kernel']}; medians of {result['rounds']} alternating rounds (minimum - maximum); other processes used "
             f"{worst['others']:.2f} processors, steal time {worst['stolen']:.2f}.", "",
             "| file | test | two ranks, tokens/s | llama.cpp with two RPC servers, tokens/s | ratio | goal |", "|---|---|---|---|---|---|"]
    for row in rows:
        ratio = row["ratio"]
        verdict = "-" if not ratio else "reached" if ratio["min"] >= GOAL else "undecided" if ratio["max"] >= GOAL else "missed"
        lines.append(f"| {row['file']} | {row['title']} | {report.cell(row, MICA)} | {report.cell(row, PEER)} | "
                     f"{report.figure(ratio, 2, 'x')} | >= {GOAL}: {verdict} |")
    troubles = {f"- {name}: {trouble['message']}" for row in rows for name, trouble in row["trouble"].items()}
    versions = {f"- {name}: {version}" for row in rows for name, version in row["versions"].items()}
    return "\n".join(lines + ["", *sorted(troubles), *sorted(versions)])


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("gguf", type=pathlib.Path, nargs="+")
    parser.add_argument("--peer", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--mica", default=str(ranks.BUILD / "bin/mica"))
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default 5)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one run may take (default 600)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything that was measured")
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def main(argv):
    args = parse(argv)
    # Ranks of a test may be started by root, as in a container.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    args.out.mkdir(parents=True, exist_ok=True)
    result = {"machine": load.machine(), "commit": load.commit(), "command": load.command_line(argv), "rounds": args.rounds, "rows": []}
    for gguf in args.gguf:
        try:
            result["rows"] += measure(gguf, args)
        except engines.Failed as why:
            sys.exit(f"rpc_peer.py: {why}")
        if args.json:  # after each file, so that an interrupted run keeps its results
            args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(markdown(result))


if __name__ == "__main__":
    main(sys.argv[1:])
