"""Runs the compared systems of all benchmarks: in separate processes, in turns, stopped while another system runs.

A peer is a program that prints one JSON object when it is ready, and then one for each line of its standard input. `serve` of
compiler/driver/bench/peer.py, which describes them, is the peer's side; `Peer` is the harness's. Needs only Python, because JAX
has its own environment.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "peers"), str(ROOT / "compiler" / "driver" / "bench")]
from peer import answers_file, serve  # noqa: E402, F401: for the peers of all benchmarks

CACHE = pathlib.Path(os.environ.get("PARTITA_BENCH_CACHE", "~/.cache/partita-bench/inference")).expanduser()

# Settings for the baselines' best performance: Debian's OpenBLAS does not recognise recent AMD CPUs, and idle workers
# must not spin while another system runs.
FAIR_ENVIRONMENT = {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_WAIT_POLICY": "ACTIVE", "KMP_BLOCKTIME": "20"}

# The priority in SCHED_FIFO, for measuring beside other work. RUN_FIRST precedes a command.
PRIORITY = 10
RUN_FIRST = ["chrt", "-f", str(PRIORITY)]

# Two ranks that may share CPU cores with other work.
MPIRUN = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2"]


class Peer:
    """A peer in a separate process, stopped by a signal while another system runs. `first` is its first answer."""

    def __init__(self, name, command, threads=None):
        self.name = name
        environment = dict(os.environ, **FAIR_ENVIRONMENT)
        if threads:
            environment.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.first = self._answer()
        self._signal(signal.SIGSTOP)

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: its process ended with code {self.process.wait()}; its messages are above")
        return json.loads(line)

    def _signal(self, number):
        os.kill(self.process.pid, number)

    def run_first(self):
        """Runs every thread of the process before all others of the machine (SCHED_FIFO)."""
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setscheduler(int(task), os.SCHED_FIFO, os.sched_param(PRIORITY))

    def ask(self, **request):
        self._signal(signal.SIGCONT)
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        return answer

    def close(self):
        self._signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def turns(systems, rounds):
    """Runs each system once per round, in an order that rotates."""
    for number in range(rounds):
        begin = number % len(systems)
        yield from systems[begin:] + systems[:begin]


def call(command):
    """The standard output of one of our programs. If it fails, its messages are the error's text."""
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {result.returncode}\n"
                           f"{result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def leave_waiting_alone():
    """Lets every system wait for its threads as it does by itself."""
    for name in ("OMP_WAIT_POLICY", "KMP_BLOCKTIME"):
        FAIR_ENVIRONMENT.pop(name, None)


@contextlib.contextmanager
def busy(processes):
    """Keeps this many other processes busy meanwhile. They end with the harness."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def alone(path):
    """Holds the lock of this file, by which several benchmarks take turns on one machine. None: no lock."""
    with open(path or os.devnull, "w", encoding="utf-8") as file:
        if path:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def warn_if_busy():
    """Warns if other load on the machine distorts the figures. Two threads suffer most."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"run.py: the machine is busy (load {load:.1f}): figures will be high and uneven", file=sys.stderr)
    return load


def cpu_name():
    return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name"))
