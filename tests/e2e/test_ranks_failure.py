"""A rank that is killed, stopped, or waits forever, or that cannot be reached, ends the run, whatever the ranks are doing, on one host and on
two."""

import contextlib
import ctypes
import dataclasses
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import harness
import test_ranks
import test_scale
from harness import Case, for_each
from served import error_of

#: Seconds within which a run ends, as docs/scale.md promises, without the time in which threads waited for a processor.
PROMISED = 5
#: How long a test waits for anything.
LIMIT = 90
BENCH = ("bench", "--repeat", "10000")
GREEDY = ("--temperature", "0")


class Clock:
    """The time since `restart` without that by which a thread was late that wants to run ten times per second, as the threads that observe
    ranks do: on a busy machine, they are late as well."""

    TURN = 0.1

    def __init__(self, case):
        self.late, self.ended = 0, threading.Event()
        self.restart()
        thread = threading.Thread(target=self._run)
        thread.start()
        case.addCleanup(thread.join)
        case.addCleanup(self.ended.set)

    def _run(self):
        begin = time.monotonic()
        while not self.ended.wait(self.TURN):
            now = time.monotonic()
            self.late += now - begin - self.TURN
            begin = now

    def restart(self):
        self.begin, self.late_before = time.monotonic(), self.late

    def elapsed(self):
        return time.monotonic() - self.begin - (self.late - self.late_before)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where ranks run, and what starts them: on this machine, or rank 0 and rank 1 on two machines that are namespaces."""

    implementation: str
    machines: int = 1
    ranks: int = 2

    def command(self, case):
        if self.machines == 2:
            return [*map(str, test_scale.two_machines(case, self.implementation)), "-n", str(self.ranks)]
        return [test_ranks.mpirun(self.implementation), "-n", str(self.ranks)]

    def program(self):
        return harness.program(harness.BUNDLED / "minimind-dense", "--shard", f"tensor={self.ranks}").path

    def host(self, rank):
        return re.escape(os.uname().nodename) if self.machines == 1 else f"mica-{rank + 1}"


class Run:
    """A run whose output is collected."""

    def __init__(self, case, place, arguments, start=(), **env):
        """`start` starts the program on each host."""
        self.case, self.place = case, place
        self.program = place.program()
        self.mark = f"MICA_TEST_FAILURE={os.getpid()} {case.id()}"
        self.output = ""
        self.process = subprocess.Popen([*place.command(case), *start, self.program, *map(str, arguments)],
                                        env={**os.environ, **test_ranks.ENV, **dict([self.mark.split("=")]), **env},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        case.addCleanup(self.end)

    def _read(self):
        while piece := os.read(self.process.stdout.fileno(), 1 << 16):
            self.output += piece.decode("utf-8", "replace")

    def processes(self, program=None):
        """Those of the program, or all that the run has started, except for mpirun."""
        return [pid for pid in test_ranks.processes_of(program, self.mark) if pid != self.process.pid]

    def printed(self, pattern):
        """Waits until the output has a match of a pattern, which is returned."""
        return self.wait(lambda: re.search(pattern, self.output), f"does not print {pattern}")

    def ranks(self, thread="mica-ranks", count=None):
        """The processes of the ranks, in order, when all have a thread with this name: by default, they have begun to send heartbeats."""

        def started():
            found = [pid for pid in self.processes(self.program) if thread in threads_of(pid)]
            return len(found) == (count or self.place.ranks) and sorted(found, key=test_ranks.rank_of)

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

    def __init__(self, pid, clock):
        self.pid, self.clock = pid, clock
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.request(self.SEIZE)
        self.stop()

    def request(self, number):
        if self.libc.ptrace(number, self.pid, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")

    def stop(self):
        self.request(self.INTERRUPT)
        self.stopped = time.monotonic()
        self.clock.restart()

    def step(self):
        """The parent learns that a traced process has ended when the tracer has."""
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.waitpid(self.pid, os.WNOHANG | self.WALL)
            if time.monotonic() - self.stopped > self.PATIENCE:
                self.request(self.CONTINUE)
                time.sleep(0.3)
                self.stop()


# What the ranks do when one fails: functions that start a run and return it when it has come so far.


def paused(case, place, arguments, phase, sleeper=None):
    """A run whose ranks, or the one that sleeps, do not leave a phase that usually takes milliseconds."""
    run = Run(case, place, arguments, LD_PRELOAD=harness.library("PausedRank.c"),
              MICA_TEST_PAUSE=phase + (f" {sleeper}" if sleeper is not None else ""))
    run.found = run.ranks("paused", None if sleeper is None else 1)
    return run


def starting(case, place, sleeper=None):
    """All ranks are about to start MPI; there are no heartbeats yet."""
    return paused(case, place, [*BENCH, "--prompt", 0, "--gen", 1], "starting", sleeper)


def started(case, place, sleeper=None):
    """All ranks have started MPI, but not their heartbeats."""
    return paused(case, place, [*BENCH, "--prompt", 0, "--gen", 1], "started", sleeper)


def loading(case, place, sleeper=None):
    return paused(case, place, [*BENCH, "--prompt", 0, "--gen", 1], "loading", sleeper)


def shutdown(case, place, sleeper=None):
    """All ranks have done what they had to do, and end MPI."""
    return paused(case, place, ["bench", "--repeat", 1, "--prompt", 0, "--gen", 1], "shutdown", sleeper)


def waiting(case, place, _=None):
    run = Run(case, place, ["chat", "--json", "-n", 4, *GREEDY])
    run.say(b"Hello\n")
    run.printed(r'"content"')
    return run


def ending(case, place, _=None):
    """The other rank is about to end when the failure is detected."""
    run = waiting(case, place)
    run.found = run.ranks()
    return run


def prefill(case, place, _=None):
    run = Run(case, place, [*BENCH, "--prompt", 512, "--gen", 0])
    run.ranks()
    time.sleep(0.5)
    return run


def decode(case, place, _=None):
    run = Run(case, place, [*BENCH, "--prompt", 0, "--gen", 200])
    run.ranks()
    time.sleep(0.5)
    return run


def serving(case, place, *options):
    """A socket in a file is reached from other namespaces as well."""
    run = Run(case, place, ["serve", "--unix-socket", os.path.join(harness.folder("socket"), "s"), *options])
    run.socket = run.printed(r" at unix:(\S+)")[1]
    return run


def serve_idle(case, place, _=None):
    return serving(case, place)


def request(run, body, answers):
    """Sends a request on another thread, which appends what it gets to `answers`."""
    connection = http.client.HTTPConnection("localhost", timeout=LIMIT)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(LIMIT)
    connection.sock.connect(run.socket)

    def send():
        try:
            with contextlib.closing(connection):
                connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon a time", "temperature": 0, **body}))
                for line in connection.getresponse():
                    answers.append(line.decode())
        except http.client.IncompleteRead:
            pass  # the last line says why
        except (OSError, http.client.HTTPException) as error:
            answers.append(f"cut off: {error}")

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def serve_streaming(case, place, _=None):
    """A stream that is being sent, and two answers that wait for a slot."""
    run = serving(case, place, "--sequences", 2)
    long = {"max_tokens": 100000, "ignore_eos": True}
    run.answers = [[], [], []]
    run.clients = []
    for i, answers in enumerate(run.answers):
        # Texts that are long enough: several, one after the other.
        run.clients.append(request(run, {**long, "stream": i == 0, "prompt": ["Once", "One"] * 20}, answers))
        run.wait(lambda: run.answers[0], "streams nothing")
    time.sleep(0.5)
    return run


def batch(case, place, _=None):
    folder = harness.folder("failing")
    requests = pathlib.Path(folder, "requests.jsonl")
    requests.write_text("".join(json.dumps({"prompt": "One, two, " * (i % 7 + 1), "id": i}) + "\n" for i in range(60)), encoding="utf-8")
    output = pathlib.Path(folder, "results.jsonl")
    arguments = ["-f", requests, "--batch", 3, "-o", output, "-n", 48, *GREEDY]
    run = Run(case, place, arguments)
    run.batch = arguments, requests, output
    run.wait(lambda: output.exists() and output.read_bytes().count(b"\n") >= 3, "writes no results")
    return run


PHASES = {phase.__name__: phase
          for phase in (starting, started, loading, waiting, prefill, decode, serve_idle, serve_streaming, batch, ending, shutdown)}
OPENMPI, MPICH = (Place(implementation) for implementation in test_ranks.IMPLEMENTATIONS)
# A rank that is stopped before it sends heartbeats ends the run after 60 s.
CASES = {f"openmpi-{phase}-{way}-{rank}": (OPENMPI, phase, way, rank)
         for phase in PHASES for way in ("killed", "stopped") for rank in (0, 1)
         if (phase, way) not in (("starting", "stopped"), ("started", "stopped"))}
# MPICH's mpirun ends a run whose rank is killed at once, so all of these take little time.
CASES |= {f"mpich-{phase}-killed-{rank}": (MPICH, phase, "killed", rank) for phase in PHASES for rank in (0, 1)}
CASES |= {f"mpich-{phase}-stopped-{rank}": (MPICH, phase, "stopped", rank)
          for phase, rank in (("loading", 1), ("waiting", 1), ("decode", 0), ("decode", 1), ("serve_streaming", 1), ("batch", 1), ("ending", 1),
                              ("shutdown", 1))}
CASES |= {f"{place.implementation}-{phase}-waits-{rank}": (place, phase, "waits", rank)
          for place, phase, rank in ((OPENMPI, "prefill", 0), (OPENMPI, "prefill", 1), (MPICH, "prefill", 1),
                                     (OPENMPI, "loading", 0), (OPENMPI, "loading", 1), (MPICH, "loading", 1))}
CASES |= {f"{place.implementation}-{phase}-without-mpirun": (place, phase, "orphaned", 0)
          for place, phase in ((OPENMPI, "decode"), (MPICH, "serve_idle"))}
# Ranks other than rank 0 do not observe each other.
CASES |= {f"four-{place.implementation}-{phase}-{way}-{rank}": (place, phase, way, rank)
          for place in (Place(implementation, ranks=4) for implementation in test_ranks.IMPLEMENTATIONS)
          for phase, way, rank in (("decode", "killed", 2), ("decode", "stopped", 3), ("serve_streaming", "killed", 3),
                                   ("serve_streaming", "stopped", 2))}
# On two machines. A cable that goes down is a failure of both ranks.
CASES |= {f"hosts-{implementation}-{phase}-{way}-{rank}": (Place(implementation, 2), phase, way, rank)
          for implementation in test_ranks.IMPLEMENTATIONS
          for phase, way, rank in (("decode", "killed", 0), ("decode", "killed", 1), ("decode", "stopped", 0), ("decode", "stopped", 1),
                                   ("decode", "cut", 1), ("serve_streaming", "killed", 1), ("serve_streaming", "stopped", 0),
                                   ("serve_streaming", "stopped", 1), ("serve_streaming", "cut", 1),
                                   ("started", "killed", 1), ("loading", "killed", 1), ("prefill", "killed", 1),
                                   ("loading", "stopped", 1), ("prefill", "stopped", 1), ("batch", "stopped", 1), ("shutdown", "killed", 1))}


@for_each(CASES, "ends")
class Failure(Case):
    def ends(self, name):
        place, phase, way, rank = CASES[name]
        run = PHASES[phase](self, place, rank if way == "waits" else None)
        self.fail_rank(run, phase, way, rank)
        # MPICH's mpirun ignores a rank that is stopped when all have finished their work.
        if way != "orphaned" and (place.implementation, phase, way) != ("mpich", "shutdown", "stopped"):
            self.assertNotEqual(run.process.returncode, 0, run.output)
            self.check_message(run, phase, way, rank)
        # MPICH's mpirun kills rank 0 at once if another one is killed.
        if phase == "serve_streaming" and rank > 0 and (place.implementation, way) != ("mpich", "killed"):
            self.check_answers(run, way, rank)
        if phase == "batch":
            self.check_resumable(run)

    def test_stopped_together(self):
        """Ranks that are all stopped for longer than heartbeats may be missing, and continued, finish as usual."""
        for place in (OPENMPI, MPICH):
            run = Run(self, place, ["bench", "--repeat", 1, "--prompt", 0, "--gen", 900])
            ranks = run.ranks()
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in ranks:
                    os.kill(pid, number)
                if number == signal.SIGSTOP:
                    time.sleep(4)
            self.assertEqual(run.process.wait(LIMIT), 0, run.output)

    def test_shell_between(self):
        """A shell that has started a rank is not killed, although a rank of another host does not respond."""
        run = Run(self, Place("openmpi", 2), [*BENCH, "--prompt", 0, "--gen", 200], ("sh", "-c", "\"$0\" \"$@\"; sleep 2; echo continues; exit 1"))
        os.kill(run.ranks()[1], signal.SIGSTOP)
        run.printed("continues")
        run.process.wait(LIMIT)

    def fail_rank(self, run, phase, way, rank):
        """A rank fails; waits until all processes have ended."""
        ranks = getattr(run, "found", None) or run.ranks()
        clock = Clock(self)
        step = lambda: None  # noqa: E731
        if way == "waits" and phase == "prefill":
            step = Traced(ranks[rank], clock).step
        elif way == "cut":
            harness.execute(["nsenter", "--target", ranks[0], "--net", "ip", "link", "set", "cable", "down"])
        elif way == "orphaned":
            run.process.kill()
        elif way != "waits":
            os.kill(ranks[rank], signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        if phase == "ending":
            run.process.stdin.close()

        def ended():
            step()
            return run.process.poll() is not None and not run.processes()

        harness.until(ended, lambda: f"the run does not end; processes {run.processes()}:\n{run.output}", LIMIT)
        elapsed = clock.elapsed()
        harness.note(self, f"{elapsed:.1f} s")
        run.reader.join(LIMIT)
        self.assertLess(elapsed, PROMISED, run.output)

    def check_message(self, run, phase, way, rank):
        """Names the rank and its host. OpenMPI and MPICH name those that are killed."""
        host = run.place.host(rank)
        hangs = "while it loads the model or computes, none of its threads has run for"
        expected = {"killed": rf"rank {rank} with PID [0-9]+ on node {host}|PID [0-9]+ RUNNING AT {host}"
                              rf"|rank {rank} on host {host} has ended",
                    "stopped": rf"rank {rank} on host {host} has not responded for 2 s: it has been stopped",
                    "cut": rf"rank {rank} on host {host} has not responded for 2 s: .* or its host cannot be reached",
                    "waits": rf"rank {rank} on host {host} hangs: {hangs} 2 s"}[way]
        if (phase, way) == ("shutdown", "stopped"):
            # Nobody observes ranks any more; mpirun names the other one.
            expected = rf"rank {1 - rank} with PID [0-9]+ on\s+node {host} exiting improperly"
            self.assertIn("mica: note: the output is complete, but MPI does not end; mpirun therefore returns an error\n",
                          run.output.replace("\r\n", "\n"))
        self.assertRegex(run.output, expected)
        # Not also the rank that has reported it, by the one that mpirun continues.
        if way in ("stopped", "waits") and run.place.machines == 1:
            self.assertNotIn(" has ended; see its messages", run.output)

    def check_answers(self, run, way, rank):
        """Each client gets an error as OpenAI's API defines it."""
        for client in run.clients:
            client.join(LIMIT)
        for stream, answers in zip((True, False, False), run.answers):
            text = "".join(answers)
            error = error_of(text) if stream else json.loads(text)["error"]
            self.assertEqual(error["type"], "server_error")
            self.assertEqual(set(error), {"message", "type", "param", "code"})
            if way != "killed":  # mpirun may tell rank 0 to end before it has detected the failure
                self.assertRegex(error["message"], f"^rank {rank} on host ")

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
