"""One training step (forward, backward, AdamW) of whole models: Partita, undivided and divided over two devices, against PyTorch and
JAX, in one run, in alternating rounds.

The figure of a system is the median over rounds; a ratio is over the fastest peer's figure. Partita's losses of the first two
steps must equal PyTorch's, from the same weights and batch. CPU time is also meaningful on a busy machine. Memory is the peak of
the process, which includes the compiler for compiled PyTorch and JAX.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import workloads
import harness

# Name: (number of threads, compile options). Devices are threads of one process and share its CPUs, or processes under mpirun.
PARTITA = {"partita": (1, []), "B=2": (2, ["--mesh", "d=2", "--shard", "B=d"]),
           "B=2 zero 1": (2, ["--mesh", "d=2", "--shard", "B=d", "--zero", "1"])}
X_OVER_B = ["--mesh", "d=2", "--shard", "B=d;X=d"]
MORE = {"B=4": (2, ["--mesh", "d=4", "--shard", "B=d"]), "X=2": (2, X_OVER_B),
        "X=2 rows": (2, [*X_OVER_B, "--experts", "rows"]), "X=2 rows 1.25": (2, [*X_OVER_B, "--experts", "rows=1.25"]),
        "X=2 gather": (2, [*X_OVER_B, "--experts", "gather"]),
        "B=2 MPI": (2, ["--mesh", "d=2", "--shard", "B=d"])}
# Name: (number of threads, worker, the worker's argument).
PEERS = {"pytorch": (1, "torch", "eager"), "compile": (1, "torch", "compile"), "nhwc": (1, "torch", "nhwc"),
         "onednn": (1, "torch", "onednn"), "jax": (1, "jax", 1), "jax B=2": (2, "jax", 2)}
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2}  # relative tolerance of a loss


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[w.name for w in workloads.WORKLOADS], metavar="WORKLOAD")
    parser.add_argument("--precisions", nargs="+", default=workloads.PRECISIONS, choices=workloads.PRECISIONS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", default=list(PARTITA), choices=PARTITA | MORE, metavar="SYSTEM",
                        help=f"of {', '.join(PARTITA)} (the default), {', '.join(MORE)}")
    parser.add_argument("--peers", nargs="*", choices=PEERS, metavar="PEER",
                        default=["pytorch", "onednn", "compile"] + (["jax", "jax B=2"] if importlib.util.find_spec("jax") else []),
                        help="of pytorch, onednn (f32 only: its linear layers by oneDNN), compile, jax, jax B=2 (the default, where "
                             "installed), nhwc (PyTorch, channels last)")
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin",
                        help="where compiler/tools/partita and runtime/tools/partita-run are")
    parser.add_argument("--against", type=pathlib.Path, metavar="TOOLS", help="another build, which takes turns as 'before'")
    parser.add_argument("--beside", type=int, default=0, metavar="N",
                        help="then measure again beside N busy processes, with every system's own way of waiting")
    parser.add_argument("--priority", action="store_true", help="run timed processes before all others of the machine (SCHED_FIFO)")
    parser.add_argument("--lock", type=pathlib.Path, metavar="FILE", help="hold the lock of this file while a system is timed")
    parser.add_argument("--json", type=pathlib.Path, default=harness.CACHE.parent / "training.json", metavar="FILE",
                        help="all figures (default %(default)s)")
    return parser.parse_args()


class Partita:
    """A program, compiled once. Each round is a process that takes one step before timing starts."""

    def __init__(self, name, workload, precision, threads, tools, plan):
        self.name, self.prefix = name, []
        self.runner = [tools / "runtime/tools/partita-run"]
        if name.startswith("B=2 MPI"):
            self.runner = [*harness.MPIRUN, *self.runner]
            threads = 1
        self.folder = tempfile.TemporaryDirectory(prefix="partita-bench-")
        self.artifact = self._path("step.partita")
        harness.call([tools / "compiler/tools/partita", "compile", *workload.source, "--precision", precision, "--train", "adamw",
                      "--beta1", workloads.BETA1, "--beta2", workloads.BETA2, "--epsilon", workloads.EPSILON,
                      "--weight-decay", workloads.DECAY, "-o", self.artifact, *plan])
        self.inputs = ["--threads", threads]
        for key, value in workload.batch_of().items():
            self._give(key, value)
        self.first = {"losses": self._losses()}
        self._give("lr", np.float32(workloads.RATE))
        self._give("step", np.int64(2))

    def _path(self, name):
        return pathlib.Path(self.folder.name) / name

    def _give(self, name, value):
        np.save(self._path(f"{name}.npy"), value)
        self.inputs += ["--input", f"{name}={self._path(name + '.npy')}"]

    def _losses(self):
        return json.loads(harness.call([*self.runner, "train", self.artifact, *self.inputs, "--lr", workloads.RATE, "--steps", 2,
                                        "--quiet", "--json"]))["losses"]

    def run_first(self):
        self.prefix = harness.RUN_FIRST

    def ask(self, warmup, repeat):
        report = json.loads(harness.call([*self.prefix, *self.runner, self.artifact, *self.inputs, "--warmup", warmup,
                                          "--repeat", repeat, "--json"]))
        return {"times_ms": report["times_ms"], "cpu_ms": report["cpu_ms"], "peak_bytes": report["memory"]["peak_process"]}

    def close(self):
        self.folder.cleanup()


def start(workload, precision, threads, arguments):
    """The systems that this number of threads allows, peers first: their losses are the reference."""
    here, running = pathlib.Path(__file__).resolve().parent, []
    try:
        for name in arguments.peers:
            needed, worker, how = PEERS[name]
            if worker == "jax" and workload.model not in workloads.JAX:
                continue
            # In bf16 PyTorch already uses oneDNN for products.
            if needed <= threads and (how != "onednn" or precision == "f32"):
                running.append(harness.Peer(name, [sys.executable, here / f"{worker}_worker.py", workload.name, precision,
                                                   threads, how], threads))
        builds = {"": arguments.tools, " before": arguments.against}
        for name in arguments.systems:
            needed, plan = (PARTITA | MORE)[name]
            for suffix, tools in builds.items():
                if tools and needed <= threads:
                    running.append(Partita(name + suffix, workload, precision, threads, tools, plan))
    except RuntimeError:
        close(running)
        raise
    return running


def close(systems):
    for system in systems:
        system.close()


def disagreements(systems, precision):
    """Describes the first error of the losses. JAX has other weights and is not compared."""
    losses = {system.name: system.first["losses"] for system in systems if not system.name.startswith("jax")}
    reference, expected = next(iter(losses.items()))
    return [f"{name}: expected the losses {expected} of {reference}, found {found}" for name, found in losses.items()
            if not np.allclose(found, expected, rtol=TOLERANCE[precision], atol=0)]


def measure(workload, precision, threads, arguments):
    """One row: the figures of each system, and its errors."""
    systems = start(workload, precision, threads, arguments)
    try:
        if arguments.priority:
            for system in systems:
                system.run_first()
        rounds = {system.name: [] for system in systems}
        for system in harness.turns(systems, arguments.rounds):
            with harness.alone(arguments.lock):
                rounds[system.name].append(system.ask(warmup=1, repeat=3 if arguments.beside else 1))
            print(".", end="", file=sys.stderr, flush=True)
        beside = {system.name: [] for system in systems}
        if arguments.beside:
            with harness.busy(arguments.beside):
                for system in harness.turns(systems, arguments.rounds):
                    beside[system.name].append(statistics.median(system.ask(warmup=1, repeat=3)["times_ms"]))
        wrong = disagreements(systems, precision)
    finally:
        close(systems)
    row = {"workload": workload.name, "precision": precision, "threads": threads, "wrong": wrong, "systems": {}}
    for name, answers in rounds.items():
        times = [statistics.median(answer["times_ms"]) for answer in answers]
        row["systems"][name] = {"ms": statistics.median(times), "fastest_ms": min(times),
                                "cpu_ms": statistics.median(answer["cpu_ms"] for answer in answers),
                                "peak_bytes": max(answer["peak_bytes"] for answer in answers)}
        if beside[name]:
            row["systems"][name]["beside_ms"] = statistics.median(beside[name])
    peers = [figures for name, figures in row["systems"].items() if name in PEERS]
    for figures in row["systems"].values():
        for key in ("ms", "fastest_ms", "peak_bytes"):
            if peers:
                figures[f"{key}_ratio"] = figures[key] / min(peer[key] for peer in peers)
    return row


def print_row(row):
    print(f"\n{row['workload']}, {row['precision']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}")
    print(f"  {'':<18}{'ms':>9}{'ratio':>7}{'fastest ms':>12}{'ratio':>7}{'CPU ms':>9}{'peak MB':>10}{'ratio':>7}")
    for name, figures in row["systems"].items():
        ratio = {key: f"{figures[key]:.2f}" if key in figures else "" for key in ("ms_ratio", "fastest_ms_ratio", "peak_bytes_ratio")}
        print(f"  {name:<18}{figures['ms']:9.1f}{ratio['ms_ratio']:>7}{figures['fastest_ms']:12.1f}{ratio['fastest_ms_ratio']:>7}"
              f"{figures['cpu_ms']:9.0f}{figures['peak_bytes'] / 1e6:10.0f}{ratio['peak_bytes_ratio']:>7}" +
              (f"   beside others {figures['beside_ms']:.1f} ms (x{figures['beside_ms'] / figures['ms']:.1f})"
               if "beside_ms" in figures else ""))
    sys.stdout.flush()


def main():
    arguments = parse_arguments()
    load, rows = harness.warn_if_busy(), []
    if arguments.beside:
        harness.leave_waiting_alone()
    for name in arguments.workloads:
        workload = workloads.find(name)
        # In a separate process, because making a model leaves gigabytes of memory behind.
        subprocess.run([sys.executable, str(harness.ROOT / "tests/peers/seeded_models.py"), str(harness.CACHE), workload.model,
                        *(["--train-batch", str(workload.batch)] if workload.is_exported else [])],
                       check=True, stdout=subprocess.DEVNULL)
        for precision in arguments.precisions:
            for threads in arguments.threads:
                try:
                    rows.append(measure(workload, precision, threads, arguments))
                    print_row(rows[-1])
                except RuntimeError as error:  # continue with the other rows
                    rows.append({"workload": name, "precision": precision, "threads": threads, "wrong": [str(error)]})
    versions = {package: importlib.metadata.version(package) for package in ("torch", "jax")
                if importlib.util.find_spec(package)}
    arguments.json.write_text(json.dumps({"cpu": harness.cpu_name(), "load": load, "versions": versions, "rounds": arguments.rounds,
                                          "rows": rows}, indent=1))
    wrong = [f"{row['workload']}, {row['precision']}, threads {row['threads']}: {text}" for row in rows for text in row["wrong"]]
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
