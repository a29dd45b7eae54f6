"""Runs the compared systems of all benchmarks: in separate processes, in turns, stopped while another system runs.

A peer is a program that prints one JSON object when it is ready. For each line {"warmup": W, "seconds": S} or {"warmup": W,
"repeat": N} on its standard input it prints {"times_ms": [...], "cpu_ms": CPU time of one run, "peak_bytes": peak memory of its
process}. `serve` is the peer's side, `Peer` the harness's. Needs only Python, because JAX has its own environment.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "peers"))
CACHE = pathlib.Path(os.environ.get("PARTITA_BENCH_CACHE", "~/.cache/partita-bench/inference")).expanduser()

# Settings for the baselines' best performance: Debian's OpenBLAS does not recognise recent AMD CPUs, and idle workers
# must not spin while another system runs.
FAIR_ENVIRONMENT = {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_WAIT_POLICY": "ACTIVE", "KMP_BLOCKTIME": "20"}

# Two ranks that may share CPU cores with other work.
MPIRUN = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2"]

PR_SET_PDEATHSIG = 1


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


def answers_file():
    """The file for a peer's answers. Libraries may print, so standard output is redirected to standard error. Also asks the kernel
    to kill this process with the harness, because the harness may die while this process is stopped."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(answers, first, run):
    """Answers until the harness closes the pipe. `run` does the timed work once."""
    print(json.dumps(first), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        for _ in range(request.get("warmup", 0)):
            run()
        times, cpu, begin = [], time.process_time(), time.perf_counter()
        while len(times) < request.get("repeat", 1) or time.perf_counter() - begin < request.get("seconds", 0):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"times_ms": times, "cpu_ms": (time.process_time() - cpu) * 1e3 / len(times),
                          "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), file=answers, flush=True)


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


def warn_if_busy():
    """Warns if other load on the machine distorts the figures. Two threads suffer most."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"run.py: the machine is busy (load {load:.1f}): figures will be high and uneven", file=sys.stderr)
    return load


def cpu_name():
    return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name"))
