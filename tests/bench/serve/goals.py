#!/usr/bin/env python3
"""Compares a served program with its goals and with llama-server with the same weights, and prints a table.

    goals.py PROGRAM [--peer LLAMA_SERVER MODEL.gguf] [--only PATTERN] [--rounds 5] [--threads 2] [--json FILE]
    goals.py --table FILE...

Each round restarts each server, Mica alternately first and last; figures are medians over the rounds, ratios medians of the rounds'
ratios. Clients run in this process, on the same machine. tests/bench/shapes.py creates programs and files with the same weights; the
context of each sequence must have at least --context tokens (`compile --max-seq`). --short tests the script with small numbers.

    streams   8 decoding streams, compared with one; also with sampling, at temperature 0.8 and the servers' other defaults
    arrival   a prompt of 2048 tokens arrives during 4 streams
    loop      64 clients in a closed loop, prompts of 32 to 2048 tokens, answers of 16 to 256
    turn      the second turn of a conversation of 4096 tokens
    idle      5000 idle connections and a stream
    batch     32 requests, sent at once, compared with the program's own --batch

--table prints the table of files that --json has written, without measuring: runs of the same program and commit are merged.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import clients  # noqa: E402
import goal_table  # noqa: E402
import load as machines  # noqa: E402
import ports  # noqa: E402


class Mica:
    name = "Mica"

    def __init__(self, options):
        self.program, self.options = options.program, options

    def command(self, port, sequences):
        return [self.program, "serve", "--port", str(port), "--threads", str(self.options.threads), "--sequences", str(sequences)]


class LlamaServer:
    name = goal_table.PEER

    def __init__(self, options):
        (self.server, self.model), self.options = options.peer, options

    def command(self, port, sequences):
        threads = str(self.options.threads)
        return [self.server, "-m", self.model, "--host", "127.0.0.1", "--port", str(port), "-t", threads, "-tb", threads, "-np",
                str(sequences), "-c", str(self.options.context * sequences), "--no-kv-unified", "--no-ui"]


@contextlib.contextmanager
def running(engine, sequences):
    """(address, process) of a server that is ready."""
    [port] = ports.free_ports()
    process = subprocess.Popen(engine.command(port, sequences), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        while True:
            if process.poll() is not None:
                sys.exit(f"mica: error: {engine.name} has ended with status {process.returncode}: {' '.join(engine.command(port, sequences))}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if ask(port, "GET", "/health")[0] == 200:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def load(url, *options):
    """Results of clients.py."""
    done = subprocess.run([sys.executable, clients.__file__, url, *map(str, options)], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, encoding="utf-8")
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    if found.get("errors"):
        sys.exit(f"mica: error: requests were refused: {found['errors']}")
    return found


def p99(found):
    """The 99th percentile of clients.percentiles, at least its resolution; --short may have measured nothing."""
    return max(found["p99"] if found else 0, 1e-5)


def p99_of(gaps):
    return p99(clients.percentiles([gap for _, gap in gaps]))


# Each function measures an engine once and returns figures by name.


def streams(engine, size):
    found = {}
    for name, count, temperature in (("tokens/s of 1", 1, 0), ("tokens/s of 8", 8, 0), ("tokens/s of 8, sampled", 8, 0.8)):
        with running(engine, 8) as (url, _):
            found[name] = load(url, "--clients", count, "--seconds", size(20), "--prompt", 16, "--answer", size(256),
                               "--temperature", temperature)["tokens_per_second"]
    found["8 over 1"] = found["tokens/s of 8"] / found["tokens/s of 1"]
    return found


def arrival(engine, size):
    answer, prompt, early = size(512), size(2048), size(64)

    async def run(url, decoding, arrives):
        """([(time, gap)] of the streams' tokens after the first, (start, end) of the prompt's request, total seconds)."""
        options = argparse.Namespace(url=url, seed=1, vocabulary=500, prompt=(16, 16), answer=(answer, answer))
        start, times = time.monotonic(), [[] for _ in range(decoding)]
        tasks = [asyncio.create_task(clients.Client(options, number).stream(clients.Client(options, number).body(), times[number]))
                 for number in range(decoding)]
        read = (0, 0)
        if arrives:
            while decoding and min(map(len, times)) < early:
                await asyncio.sleep(0.005)
            # Another prompt each time: nothing of it is cached.
            late = clients.Client(options, f"late, beside {decoding}")
            asked, first = time.monotonic(), []
            await late.stream(late.body(prompt=[late.random.randrange(500) for _ in range(prompt)], max_tokens=1), first)
            read = (asked, time.monotonic())
        await asyncio.gather(*tasks)
        gaps = [(after, after - before) for each in times for before, after in zip(each, each[1:])]
        return gaps, read, time.monotonic() - start

    found = {}
    with running(engine, 5) as (url, _):
        alone, _, seconds_streams = asyncio.run(run(url, 4, False))
        _, _, seconds_prompt = asyncio.run(run(url, 0, True))
        both, read, seconds = asyncio.run(run(url, 4, True))
    during = [(when, gap) for when, gap in both if read[0] <= when <= read[1]]
    found["p99 gap undisturbed, ms"] = 1e3 * p99_of(alone)
    found["p99 gap during prefill, ms"] = 1e3 * p99_of(during or both)
    found["gaps over undisturbed"] = p99_of(both) / p99_of(alone)
    found["gaps during prefill over undisturbed"] = p99_of(during or both) / p99_of(alone)
    found["cost over one after the other"] = seconds / (seconds_streams + seconds_prompt)
    return found


def loop(engine, size):
    scale, count = engine.options.loop_scale, size(64, 4)
    sizes = {name: max(1, tokens // scale) for name, tokens in (("shortest prompt", 32), ("longest prompt", size(2048)), ("shortest answer", 16),
                                                                ("longest answer", size(256, 17)))}
    with running(engine, 8) as (url, _):
        found = load(url, "--clients", count, "--seconds", size(engine.options.loop_seconds),
                     "--prompt", f"{sizes['shortest prompt']}:{sizes['longest prompt']}", "--answer", f"{sizes['shortest answer']}:{sizes['longest answer']}")
    return {"tokens/s": found["tokens_per_second"], "p99 first token, s": found["first_token"]["p99"], "p99 gap, ms": 1e3 * p99(found["gaps"]),
            "requests": found["requests"], "requests per client": found["requests"] / count, "clients": count, "scale": scale, **sizes}


#: Seconds that a user takes to read an answer and to write the next question.
THINKING = 5


def turn(engine, size):
    """Only for Mica: new are the second question and the last token of the first answer, which was generated but never computed. THINKING
    seconds are between the two turns."""
    options = argparse.Namespace(url="", seed=1, vocabulary=500, prompt=(0, 0), answer=(0, 0))
    random = clients.Client(options, "turn").random
    first, question = ([random.randrange(500) for _ in range(length)] for length in (size(4096), size(64)))
    answer = [7] * size(256)
    with running(engine, 1) as (url, _):
        def completion(prompt, max_tokens, **fields):
            start = time.monotonic()
            status, text = ask(int(url.rpartition(":")[2]), "POST", "/v1/completions",
                               {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **fields})
            if status != 200:
                sys.exit(f"mica: error: {engine.name}: {text.decode()}")
            return time.monotonic() - start, json.loads(text)["usage"]

        # The bias determines the answer, so that its tokens are known.
        completion(first, len(answer), ignore_eos=True, logit_bias={"7": 100})
        # The question is not sent at once, as by a user: the server may recompute the answer until then.
        time.sleep(THINKING)
        seconds, usage = completion(first + answer + question, 1)
    computed = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
    return {"computed over new": computed / (len(question) + 1), "computed": computed, "second turn, s": seconds}


def idle(engine, size):
    with running(engine, 2) as (url, process):
        found = load(url, "--idle", size(5000), "--clients", 1, "--seconds", size(40), "--prompt", 16, "--answer", size(256), "--pid",
                     process.pid)
    before, after = found["resident_bytes"]
    return {"MB more": (after - before) / 1e6, "gaps over undisturbed": p99(found["gaps_idle"]) / p99(found["gaps"])}


def batch(engine, size):
    """Only for Mica: a server and `--batch`, with their defaults. `--batch` writes whole texts, like answers that are not streamed; gaps
    between the tokens of streamed ones are bounded, for which prompts take more time."""
    options = argparse.Namespace(url="", seed=2, vocabulary=500, prompt=(32, size(512, 64)), answer=(16, size(256, 17)))
    bodies = lambda streamed: [clients.Client(options, number).body(stream=streamed) for number in range(size(32, 8))]

    def seconds_of(requests):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.writelines(json.dumps({"tokens": each["prompt"], "max_tokens": each["max_tokens"]}) + "\n" for each in requests)
            file.flush()
            start = time.monotonic()
            subprocess.run([engine.program, "-f", file.name, "--batch", "8", "--ignore-eos", "--temperature", "0", "--threads",
                            str(engine.options.threads)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
            return time.monotonic() - start

    async def served(url, streamed):
        options.url = url
        asked, start = bodies(streamed), time.monotonic()
        replies = await asyncio.gather(*(clients.Client(options, number).reply(each) for number, each in enumerate(asked)))
        seconds = time.monotonic() - start
        if refused := [body.decode() for status, body in replies if status != 200]:
            sys.exit(f"mica: error: requests were refused: {refused[0]}")
        for each, (_, body) in zip(map(json.loads, asked), replies):
            if (count := clients.answer_of(body.decode(), each)[2]) != each["max_tokens"]:
                sys.exit(f"mica: error: {each['max_tokens']} tokens are asked for, the answer has {count}")
        return seconds

    # Loading is not included: the server has loaded the program before.
    loading = seconds_of([{"prompt": [1], "max_tokens": 1}])
    alone, found = max(seconds_of(map(json.loads, bodies(False))) - loading, 1e-3), {}
    for name, streamed in (("time over --batch", False), ("time over --batch, streamed", True)):
        with running(engine, 8) as (url, _):
            found[name] = asyncio.run(served(url, streamed)) / alone
    return {**found, "seconds": alone}


#: Measurements, and whether the peer takes part. Figures and goals are in goal_table.py.
WORK = {"streams": (streams, True), "arrival": (arrival, True), "loop": (loop, True), "turn": (turn, False), "idle": (idle, False), "batch": (batch, False)}


def weights_of(program):
    done = subprocess.run([program, "info", "--json"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return json.loads(done.stdout)["weights"]


def peer(server):
    """Its version and compiler, as it prints them, and how it was configured, if it is in its build folder."""
    done = subprocess.run([server, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False, encoding="utf-8")
    version, _, built = (done.stdout + done.stderr).strip().partition("\n")
    found = {"peer": re.sub(r"^version: ", "", version), "peer_build": built}
    with contextlib.suppress(OSError):
        cache = (pathlib.Path(server).resolve().parents[1] / "CMakeCache.txt").read_text(encoding="utf-8")
        found["peer_options"] = dict(re.findall(r"^(CMAKE_BUILD_TYPE|CMAKE_CXX_FLAGS|GGML_(?:BLAS|LLAMAFILE|NATIVE|OPENMP)):\w+=(.*)$", cache, re.M))
    return found


def conditions(options):
    """What the figures depend on."""
    found = {**machines.machine(), "mica": machines.commit(), "command": machines.command_line(sys.argv[1:]),
             "weights": weights_of(options.program), "threads": options.threads, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}
    if changes := machines.changes():
        found["changes"] = changes
    return {**found, **(peer(options.peer[0]) if options.peer else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--table", nargs="+", metavar="FILE")
    parser.add_argument("--peer", nargs=2, metavar=("LLAMA_SERVER", "MODEL.gguf"))
    parser.add_argument("--only", default="", help="a pattern of what to measure: " + ", ".join(WORK))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=8192, help="tokens that each sequence of the peer holds")
    parser.add_argument("--loop-seconds", type=int, default=60,
                        help="how long clients of the closed loop send requests; with less than the time of several answers, it is not a loop, and has no verdict")
    parser.add_argument("--loop-scale", type=int, default=1, metavar="N",
                        help="divide the sizes of the closed loop's prompts and answers by N, so that each client sends several requests within minutes")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", help="a file for all figures of all rounds")
    options = parser.parse_args()
    if options.table:
        return print(goal_table.table_of(options.table))
    if not options.program:
        parser.error("name a program to measure, or files with --table")
    size = (lambda value, short=None: short or max(2, value // 20)) if options.short else lambda value, short=None: value
    engines = [Mica(options)] + ([LlamaServer(options)] if options.peer else [])
    samples, loads = {}, {}
    for name, (measure, with_peer) in WORK.items():
        if not re.search(options.only, name):
            continue
        taking_part = engines if with_peer else engines[:1]
        rounds = {engine.name: [] for engine in taking_part}
        begun = machines.Load()
        for number in range(options.rounds):
            for engine in taking_part if number % 2 == 0 else reversed(taking_part):
                found = measure(engine, size)
                rounds[engine.name].append(found)
                print(f"{name}, round {number + 1}, {engine.name}: {found}", file=sys.stderr, flush=True)
        samples[name] = rounds
        loads[name] = {share: round(value, 3) for share, value in begun.report().items()}
    lines = goal_table.lines_of(samples, weights_of(options.program))
    print(goal_table.HEAD)
    for line in lines:
        print(goal_table.formatted(line, pathlib.Path(options.program).name, goal_table.divergence(weights_of(options.program))))
    for name, each in loads.items():
        print(f"\n{name}: {each['seconds']:.0f} s, processors used by others {each['others']:.2f}, withheld by the hypervisor {each['stolen']:.2f}",
              file=sys.stderr)
    if options.json:
        found = {"conditions": conditions(options), "load": loads, "rounds": samples, "table": lines}
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
