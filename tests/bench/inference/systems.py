"""The compared systems with one interface: output() and round(seconds, warmup) -> times in ms."""

import json
import math
import pathlib
import sys
import tempfile
import time

import numpy as np

import workloads
import harness


class Peer(harness.Peer):
    """worker.py with one system."""

    def __init__(self, system, workload, threads):
        worker = pathlib.Path(__file__).resolve().with_name("worker.py")
        super().__init__(system, [sys.executable, worker, system, workload.name, threads], threads)
        path = pathlib.Path(self.first["output"])
        self._output = np.load(path)
        path.unlink()

    def output(self):
        return self._output

    def round(self, seconds, warmup):
        return self.ask(seconds=seconds, warmup=warmup)["times_ms"]


class Partita:
    """Runs `partita import` and `partita compile` once, and partita-run once per round. partita-run excludes its start from the times."""

    # Name: (devices, options of compile). Devices are threads of one process and share its CPUs, or processes under mpirun.
    PLANS = {"partita": (1, []), "B=2": (2, ["--mesh", "d=2", "--shard", "B=d"]), "B=4": (4, ["--mesh", "d=4", "--shard", "B=d"]),
             "B=2 MPI": (2, ["--mesh", "d=2", "--shard", "B=d"])}

    def __init__(self, system, suffix, workload, threads, tools, door):
        self.name, self.threads = system + suffix, threads
        self.run_tool = [tools / "runtime" / "tools" / "partita-run"]
        if "MPI" in system:
            self.run_tool, self.threads = [*harness.MPIRUN, *self.run_tool], threads // 2
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
        harness.call([partita, "import", *source, "-o", directory / "model.mlir"])
        harness.call([partita, "compile", directory / "model.mlir", "-o", self.artifact, *self.PLANS[system][1]])
        self.compile_s = time.perf_counter() - start
        self.median_ms = None

    def _run(self, repeat, warmup, *more):
        report = json.loads(harness.call([*self.run_tool, self.artifact, *self.arguments, "--threads", self.threads,
                                          "--repeat", repeat, "--warmup", warmup, "--json", *more]))
        self.median_ms = report["median_ms"]
        return report["times_ms"]

    def output(self, like):
        """The output with the shape of `like`; a model may have more outputs than the compared one."""
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
