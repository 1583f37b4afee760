"""A rank that is killed, stopped, or waits forever ends the run, whatever the ranks are doing."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import harness
import test_ranks
from harness import Case, for_each

#: How long a test waits for the end of a run. The time that it took is reported; on an idle machine it is less than 5 s.
LIMIT = 90
BENCH = ("bench", "--repeat", "10000")
GREEDY = ("--temperature", "0")


class Run:
    """A run of two ranks, whose output is collected."""

    def __init__(self, case, implementation, arguments):
        self.case = case
        self.program = test_ranks.programs()[1]
        self.mark = f"MICA_TEST_FAILURE={os.getpid()} {case.id()}"
        self.output = ""
        self.process = subprocess.Popen([test_ranks.mpirun(implementation), "-n", "2", self.program, *map(str, arguments)],
                                        env={**os.environ, **test_ranks.ENV, **dict([self.mark.split("=")])},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        case.addCleanup(self.end)

    def _read(self):
        while piece := os.read(self.process.stdout.fileno(), 1 << 16):
            self.output += piece.decode("utf-8", "replace")

    def processes(self):
        return test_ranks.processes_of(self.program, self.mark)

    def printed(self, pattern):
        """Waits until the output has a match of a pattern, which is returned."""
        return self.wait(lambda: re.search(pattern, self.output), f"does not print {pattern}")

    def ranks(self):
        """The processes of the ranks, in order, when all have begun to send heartbeats."""

        def started():
            found = [pid for pid in self.processes() if "mica-ranks" in threads_of(pid)]
            return len(found) == 2 and sorted(found, key=test_ranks.rank_of)

        return self.wait(started, "does not start its ranks")

    def wait(self, holds, problem):
        """Waits until `holds()` is true; fails if the run ends before."""

        def done():
            value = holds()
            if not value and self.process.poll() is not None:
                raise AssertionError(f"the run has ended:\n{self.output}")
            return value

        return harness.until(done, lambda: f"the run {problem}:\n{self.output}", LIMIT)

    def say(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def end(self):
        """Ends what is left of the run."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()


def threads_of(pid):
    """The names of the threads of a process."""
    names = []
    with contextlib.suppress(OSError):
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            names.append((thread / "comm").read_text().strip())
    return names


class Traced:
    """Stops the main thread of a process, but not its other threads: an endless wait. It must not be in an exchange, where ranks wait for
    each other, so it is stopped at another moment if the rank does not fail."""

    SEIZE, INTERRUPT, CONTINUE, WALL = 0x4206, 0x4207, 7, 0x40000000
    PATIENCE = 10

    def __init__(self, pid):
        self.pid = pid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.request(self.SEIZE)
        self.stop()

    def request(self, number):
        if self.libc.ptrace(number, self.pid, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")

    def stop(self):
        self.request(self.INTERRUPT)
        self.stopped = time.monotonic()

    def step(self):
        """The parent learns that a traced process has ended when the tracer has."""
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.waitpid(self.pid, os.WNOHANG | self.WALL)
            if time.monotonic() - self.stopped > self.PATIENCE:
                self.request(self.CONTINUE)
                time.sleep(0.3)
                self.stop()


# What the ranks do when one fails: functions that start a run and return it when it has come so far.


def loading(case, implementation):
    # Loading takes only milliseconds; what follows it does not end, so that the ranks can be found in time.
    return Run(case, implementation, [*BENCH, "--verify-weights", "--prompt", 0, "--gen", 1])


def waiting(case, implementation):
    run = Run(case, implementation, ["chat", "--json", "-n", 4, *GREEDY])
    run.say(b"Hello\n")
    run.printed(r'"content"')
    return run


def prefill(case, implementation):
    run = Run(case, implementation, [*BENCH, "--prompt", 512, "--gen", 0])
    run.ranks()
    time.sleep(1)
    return run


def decode(case, implementation):
    run = Run(case, implementation, [*BENCH, "--prompt", 0, "--gen", 200])
    run.ranks()
    time.sleep(1)
    return run


def serve_idle(case, implementation):
    run = Run(case, implementation, ["serve", "--port", 0])
    run.address = run.printed(r"http://[0-9.]+:[0-9]+")[0]
    return run


def request(run, body, answers):
    """Sends a request on another thread, which appends what it gets to `answers`."""

    def send():
        data = json.dumps({"prompt": "Once upon a time", "temperature": 0, **body}).encode()
        try:
            with urllib.request.urlopen(run.address + "/v1/completions", data, timeout=LIMIT) as reply:
                for line in reply:
                    answers.append(line.decode())
        except urllib.error.HTTPError as error:
            answers.append(error.read().decode())
        except OSError as error:
            answers.append(f"cut off: {error}")

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def serve_streaming(case, implementation):
    """A stream that is being sent, and two answers that wait for a slot."""
    run = Run(case, implementation, ["serve", "--port", 0, "--sequences", 2])
    run.address = run.printed(r"http://[0-9.]+:[0-9]+")[0]
    long = {"max_tokens": 100000, "ignore_eos": True}
    run.answers = [[], [], []]
    run.clients = []
    for i, answers in enumerate(run.answers):
        # Texts that are long enough: several, one after the other.
        run.clients.append(request(run, {**long, "stream": i == 0, "prompt": ["Once", "One"] * 20}, answers))
        run.wait(lambda: run.answers[0], "streams nothing")
    time.sleep(0.5)
    return run


def batch(case, implementation):
    folder = harness.folder("failing")
    requests = pathlib.Path(folder, "requests.jsonl")
    requests.write_text("".join(json.dumps({"prompt": "One, two, " * (i % 7 + 1), "id": i}) + "\n" for i in range(60)), encoding="utf-8")
    output = pathlib.Path(folder, "results.jsonl")
    arguments = ["-f", requests, "--batch", 3, "-o", output, "-n", 48, *GREEDY]
    run = Run(case, implementation, arguments)
    run.batch = arguments, requests, output
    run.wait(lambda: output.exists() and output.read_bytes().count(b"\n") >= 3, "writes no results")
    return run


PHASES = {phase.__name__: phase for phase in (loading, waiting, prefill, decode, serve_idle, serve_streaming, batch)}
# The other rank is about to end when the failure is detected: its input is closed at the same time.
PHASES["shutdown"] = waiting
WAYS = ("killed", "stopped")
CASES = {f"openmpi-{phase}-{way}-{rank}": ("openmpi", phase, way, rank) for phase in PHASES for way in WAYS for rank in (0, 1)}
CASES |= {f"mpich-{phase}-{way}-{rank}": ("mpich", phase, way, rank)
          for phase, way, rank in (("loading", "stopped", 1), ("waiting", "stopped", 1), ("prefill", "killed", 1), ("decode", "stopped", 0),
                                   ("decode", "stopped", 1), ("serve_streaming", "stopped", 1), ("batch", "stopped", 1),
                                   ("shutdown", "stopped", 1))}
CASES |= {f"{implementation}-{phase}-waits-{rank}": (implementation, phase, "waits", rank)
          for implementation, phase, rank in (("openmpi", "prefill", 0), ("openmpi", "prefill", 1), ("mpich", "prefill", 1))}


@for_each(CASES, "ends")
class Failure(Case):
    def ends(self, name):
        implementation, phase, way, rank = CASES[name]
        run = PHASES[phase](self, implementation)
        self.fail_rank(run, phase, way, rank)
        self.check_message(run.output, way, rank)
        if phase == "serve_streaming" and rank == 1:
            self.check_answers(run, way)
        if phase == "batch":
            self.check_resumable(run)

    def fail_rank(self, run, phase, way, rank):
        """A rank fails; waits until all processes have ended."""
        pid = run.ranks()[rank]
        traced = None
        start = time.monotonic()
        if way == "waits":
            traced = Traced(pid)
        else:
            os.kill(pid, signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        if phase == "shutdown":
            run.process.stdin.close()

        def ended():
            if traced:
                traced.step()
            return run.process.poll() is not None and not run.processes()

        harness.until(ended, lambda: f"the run does not end; processes {run.processes()}:\n{run.output}", LIMIT)
        harness.note(self, f"{time.monotonic() - (traced.stopped if traced else start):.1f} s")
        run.reader.join(LIMIT)
        self.assertNotEqual(run.process.returncode, 0, run.output)

    def check_message(self, output, way, rank):
        """Names the rank and its host. OpenMPI and MPICH name those that are killed."""
        host = re.escape(os.uname().nodename)
        expected = {"killed": rf"rank {rank} with PID [0-9]+ on node {host}|PID [0-9]+ RUNNING AT {host}"
                              rf"|rank {rank} on host {host} has ended",
                    "stopped": rf"rank {rank} on host {host} has not responded for 2\.5 s: it has been stopped",
                    "waits": rf"rank {rank} on host {host} hangs: in a step of the model, none of its threads has run for 2\.5 s"}[way]
        self.assertRegex(output, expected)

    def check_answers(self, run, way):
        """Each client gets an error as OpenAI's API defines it."""
        for client in run.clients:
            client.join(LIMIT)
        for stream, answers in zip((True, False, False), run.answers):
            last = next(line for line in reversed(answers) if line.strip())
            self.assertEqual(last.startswith("data: "), stream, last)
            error = json.loads(last.removeprefix("data: "))["error"]
            self.assertEqual(error["type"], "server_error")
            self.assertEqual(set(error), {"message", "type", "param", "code"})
            if way != "killed":  # mpirun may tell rank 0 to end before it has detected the failure
                self.assertRegex(error["message"], "^rank 1 on host ")

    def check_resumable(self, run):
        """The batch continues, and its results are those of an uninterrupted run."""
        arguments, requests, output = run.batch
        one, two = test_ranks.programs()
        before = output.read_bytes().count(b"\n")
        self.assertLess(before, 60)
        resumed = test_ranks.started("openmpi", 2, two, *arguments)
        expected = pathlib.Path(f"{requests}.expected")
        harness.execute([one, *(expected if argument is output else argument for argument in arguments)])
        texts = [sorted((found["id"], found["text"]) for found in map(json.loads, path.read_text(encoding="utf-8").splitlines()))
                 for path in (output, expected)]
        self.assertEqual(len(texts[0]), 60, resumed.stderr)
        self.assertEqual(*texts)
