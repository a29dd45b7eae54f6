"""The systems that are compared, behind one interface: output() and round(seconds, warmup) -> times in ms."""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import workloads

# Baselines at their best: Debian's OpenBLAS knows no recent AMD CPU, and idle workers must not spin beside another system.
FAIR_ENVIRONMENT = {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_WAIT_POLICY": "ACTIVE", "KMP_BLOCKTIME": "20"}


class Peer:
    """A peer's own process (worker.py), stopped by a signal whenever it is not its turn."""

    def __init__(self, system, workload, threads):
        here = pathlib.Path(__file__).resolve().parent
        environment = dict(os.environ, **FAIR_ENVIRONMENT, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        self.name = system
        self.process = subprocess.Popen([sys.executable, str(here / "worker.py"), system, workload.name, str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        path = pathlib.Path(self._answer()["output"])
        self._output = np.load(path)
        path.unlink()
        self._pause()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: its process ended with code {self.process.wait()}; its messages are above")
        return json.loads(line)

    def _pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def output(self):
        return self._output

    def round(self, seconds, warmup):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(json.dumps({"seconds": seconds, "warmup": warmup}) + "\n")
        self.process.stdin.flush()
        times = self._answer()["times_ms"]
        self._pause()
        return times

    def close(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


class Partita:
    """partita import, partita compile once; partita-run once a round, which times without its own start."""

    name = "partita"

    def __init__(self, workload, threads, tools, door):
        self.threads = threads
        self.run_tool = tools / "runtime" / "tools" / "partita-run"
        self.directory = tempfile.TemporaryDirectory(prefix="partita-bench-")
        directory = pathlib.Path(self.directory.name)
        self.artifact = directory / "model.partita"
        self.arguments = []
        for name, value in workload.inputs().items():
            np.save(directory / f"{name}.npy", value)
            self.arguments += ["--input", f"{name}={directory / name}.npy"]
        partita = tools / "compiler" / "tools" / "partita"
        source = [workload.onnx]  # exported at these shapes
        if door == "folder":
            source = [workload.folder, "--dim", ",".join(f"{name}={size}" for name, size in workload.dims.items())]
        start = time.perf_counter()
        self._call([partita, "import", *source, "-o", directory / "model.mlir"])
        self._call([partita, "compile", directory / "model.mlir", "-o", self.artifact])
        self.compile_s = time.perf_counter() - start
        self.median_ms = None

    @staticmethod
    def _call(command):
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stderr.strip()}")
        return result.stdout

    def _run(self, repeat, warmup, *more):
        report = json.loads(self._call([self.run_tool, self.artifact, *self.arguments, "--threads", self.threads,
                                        "--repeat", repeat, "--warmup", warmup, "--json", *more]))
        self.median_ms = report["median_ms"]
        return report["times_ms"]

    def output(self, like):
        """The output whose shape is that of `like`: a model may have more than the one that is compared."""
        directory = pathlib.Path(self.directory.name) / "out"
        self._run(1, 0, "--output-dir", directory)
        arrays = {path.name: np.load(path) for path in sorted(directory.glob("*.npy"))}
        for array in arrays.values():
            if array.shape == like.shape:
                return array
        shapes = {name: array.shape for name, array in arrays.items()}
        raise RuntimeError(f"expected an output of shape {like.shape}, found {shapes} in {directory}")

    def round(self, seconds, warmup):
        if self.median_ms is None:
            self._run(1, 1)
        return self._run(max(1, math.ceil(seconds * 1e3 / self.median_ms)), warmup)

    def close(self):
        self.directory.cleanup()
