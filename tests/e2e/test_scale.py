"""tools/scale/two-machines.sh: a program for several ranks on two machines that are namespaces, and what the script refuses."""

import os
import shutil
import signal
import subprocess
import time

import harness
from harness import BUNDLED, Case, for_each
from test_ranks import IMPLEMENTATIONS, MODELS, PROMPT, broken, mpirun, processes_of, programs

SCRIPT = harness.ROOT / "tools/scale/two-machines.sh"


def two_machines(case, implementation):
    """The command that starts ranks by an implementation; skips the test if this machine cannot."""
    mpirun(implementation)
    done = harness.once(("two machines", implementation),
                        lambda: harness.execute([SCRIPT, "--mpi", implementation, "--rate", "1gbit", "true"], check=False))
    if done.returncode:
        message = done.stderr.decode().strip()
        # In a container without privileges not even empty namespaces are possible; any other failure is one of the script.
        if "two-machines.sh: needs " not in message:
            alone = harness.execute(["unshare", "--net", "--pid", "--mount", "--fork", "true"], check=False)
            case.assertNotEqual(alone.returncode, 0, message)
        case.skipTest(message)
    return [SCRIPT, "--mpi", implementation]


#: Parameters of docs/scale.md, in the environment.
PARAMETERS = {"openmpi": {"OMPI_MCA_btl_tcp_port_min_v4": "50000", "OMPI_MCA_btl_tcp_port_range_v4": "100",
                          "OMPI_MCA_oob_tcp_dynamic_ipv4_ports": "50100-50103", "OMPI_MCA_btl_tcp_if_include": "10.87.0.0/24",
                          "OMPI_MCA_odls_base_sigkill_timeout": "0"},
              "mpich": {"UCX_TCP_PORT_RANGE": "50500-50600", "MPIEXEC_PORT_RANGE": "50300:50400", "UCX_NET_DEVICES": "cable"}}

#: What --show prints before the program, as in docs/scale.md.
SHOWN = {"openmpi": "mica-1$ cat hosts\nmica-1 slots=1\nmica-2 slots=1\nmica-1$ mpirun.openmpi --hostfile hosts -n 2 --bind-to none ",
         "mpich": "mica-1$ cat hosts\nmica-1:1\nmica-2:1\nmica-1$ mpirun.mpich -f hosts -n 2 "}


@for_each(IMPLEMENTATIONS, "text")
@for_each(IMPLEMENTATIONS, "parameters")
@for_each(IMPLEMENTATIONS, "models")
@for_each(IMPLEMENTATIONS, "slow_link")
@for_each(IMPLEMENTATIONS, "mpi_fails")
@for_each(IMPLEMENTATIONS, "shown")
@for_each(IMPLEMENTATIONS, "ended")
class TwoMachines(Case):
    def text(self, name):
        """The text of one process, without and with a limit of the link, with one rank and with two on each machine."""
        start = two_machines(self, name)
        hosts = harness.execute([*start, "-n", 4, "sh", "-c", "hostname"]).stdout.split()
        self.assertEqual(sorted(hosts), [b"mica-1"] * 2 + [b"mica-2"] * 2)
        one, two = programs()
        four = harness.program(BUNDLED / "minimind-dense", "--shard", "tensor=4").path
        expected = harness.execute([one, *PROMPT]).stdout
        for ranks, program, *options in ((2, two), (2, two, "--rate", "100mbit"), (4, four)):
            done = self.started([*start, "-n", ranks, *options, program, *PROMPT])
            self.assertEqual(done.stdout.replace(b"\r\n", b"\n"), expected)

    def started(self, command):
        """The result of a command. On a busy machine, MPICH's mpirun occasionally loses the connection to its helper on a host while ranks
        start MPI, for a reason that is not known: then the command is repeated once."""
        done = harness.execute(command, check=False)
        if done.returncode and not done.stdout and b"unable to send PMI_RESPONSE header to proxy" in done.stderr:
            harness.note(self, "MPICH's mpirun lost its helper; repeated")
            return harness.execute(command)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done

    def parameters(self, name):
        """The ports and networks of docs/scale.md are accepted, and the text is the same."""
        start = two_machines(self, name)
        one, two = programs()
        done = harness.execute([*start, two, *PROMPT], env=PARAMETERS[name])
        self.assertEqual(done.stdout.replace(b"\r\n", b"\n"), harness.execute([one, *PROMPT]).stdout)

    def models(self, name):
        """The ids of one process, of experts with padded columns and of a hybrid, after a prompt of many rows."""
        start = two_machines(self, name)
        arguments = ("--tokens", ",".join(str(3 + i * 5 % 50) for i in range(40)), "-n", "8", "--temperature", "0", "--ignore-eos", "--print-tokens")
        for model in ("qwen3_moe", "delta"):
            folder, options, _ = MODELS[model]()
            one, four = (harness.program(folder, *options, *shard).path for shard in ((), ("--shard", "tensor=4")))
            found = self.started([*start, "-n", 4, four, *arguments]).stdout.split()
            self.assertEqual(found, harness.execute([one, *arguments]).stdout.split())
            self.assertEqual(len(found), 8)

    def slow_link(self, name):
        """Exchanges that take longer than heartbeats may be missing, here of 500 rows of 1040 numbers from each rank, do not end the run."""
        start = two_machines(self, name)
        folder, options, _ = MODELS["deep_f32"]()
        one, two = (harness.program(folder, *options, *shard).path for shard in ((), ("--shard", "tensor=2")))
        arguments = ("--tokens", ",".join(str(3 + i * 5 % 50) for i in range(500)), "-n", "2", "--temperature", "0", "--ignore-eos",
                     "--print-tokens")
        begin = time.monotonic()
        found = self.started([*start, "--rate", "6mbit", two, *arguments]).stdout.split()
        # Two layers with such an exchange of 2.1 MB.
        self.assertGreater(time.monotonic() - begin, 2 * 2.5)
        self.assertEqual(found, harness.execute([one, *arguments]).stdout.split())
        self.assertEqual(len(found), 2)

    def mpi_fails(self, name):
        """A function of MPI returns an error on rank 1, after MPI has been started: rank 0 does not wait for it for a minute."""
        start = two_machines(self, name)
        begin = time.monotonic()
        self.assertRegex(broken(self, "split 1", start), r"error: .*rank 1 on host mica-2: MPI failed: \S")
        self.assertLess(time.monotonic() - begin, 30)

    def shown(self, name):
        """The command line for machines of a network can be copied to a shell."""
        start = two_machines(self, name)
        done = harness.execute([*start, "--show", "printf", "%s|", "Once upon", "it's"])
        self.assertEqual(done.stdout, b"Once upon|it's|" * 2)
        self.assertEqual(done.stderr.decode(), SHOWN[name] + "printf %s\\| Once\\ upon it\\'s\n")

    def ended(self, name):
        """No process is left, whether the script is ended or killed."""
        start = two_machines(self, name)
        _, two = programs()
        for ending in (signal.SIGTERM, signal.SIGKILL):
            mark = f"MICA_TEST_SCALE={os.getpid()} {name} {ending}"
            command = [*map(str, start), two, "bench", "--prompt", "0", "--gen", "200", "--repeat", "10000"]
            with subprocess.Popen(command, env={**os.environ, **dict([mark.split("=")])}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
                harness.until(lambda mark=mark: len(processes_of(two, mark)) == 2, "the ranks do not start", 60)
                run.send_signal(ending)
                self.assertNotEqual(run.wait(timeout=60), 0)
                harness.until(lambda mark=mark: not processes_of(two, mark), "a rank is left", 10)


class Refused(Case):
    def refused(self, *command, **settings):
        done = harness.execute(command, check=False, **settings)
        self.assertEqual(done.stdout, b"")
        return done.returncode, done.stderr.decode()

    def test_without_root(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root, to run without it")
        found = self.refused("setpriv", "--reuid", "65534", "--clear-groups", "bash", SCRIPT, "true")
        self.assertEqual(found, (1, "two-machines.sh: needs root, to create network namespaces; start it with sudo\n"))

    def test_without_iproute2(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        found = self.refused("/bin/bash", SCRIPT, "true", env={"PATH": "/nonexistent"})
        self.assertEqual(found, (1, "two-machines.sh: needs ip; install the Debian package iproute2\n"))

    def test_usage(self):
        for arguments, message in ((("-n", "3", "true"), "-n '3' is not an even number of ranks"), ((), "expects a program; see --help"),
                                   (("--rate", "fast", "true"), "--rate 'fast' is not a rate such as 1gbit"),
                                   (("--mpi", "other", "true"), "--mpi 'other' is neither openmpi nor mpich"),
                                   (("-n",), "an option is incomplete; see --help"), (("-x", "true"), "unknown option -x; see --help")):
            self.assertEqual(self.refused(SCRIPT, *arguments), (2, f"two-machines.sh: {message}\n"))
