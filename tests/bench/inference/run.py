"""Inference of whole models: Partita against onnxruntime and PyTorch, in one run, in alternating rounds.

Only steady-state inference is timed, and no two systems run at once. The figure of a system is the median over rounds of each
round's median; a ratio is Partita's figure over the fastest peer's. Outputs must agree with PyTorch's.
"""

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import subprocess
import sys

import numpy as np

import workloads
import harness
import systems

RELATIVE, OF_SCALE = 1e-3, 1e-4  # |a - b| <= RELATIVE |b| + OF_SCALE rms(b)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[w.name for w in workloads.WORKLOADS], metavar="WORKLOAD")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each system in each round (default %(default)s)")
    parser.add_argument("--peers", nargs="+", default=["onnxruntime", "pytorch", "pytorch-onednn"],
                        help="of onnxruntime, pytorch, pytorch-onednn (the default three), pytorch-nhwc, pytorch-compile")
    parser.add_argument("--systems", nargs="+", default=["partita"], choices=systems.Partita.PLANS, metavar="SYSTEM",
                        help=f"of {', '.join(systems.Partita.PLANS)}; a division where the batch allows it (default: partita)")
    parser.add_argument("--peers-only", action="store_true", help="baselines without Partita")
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin",
                        help="where compiler/tools/partita and runtime/tools/partita-run are")
    parser.add_argument("--against", type=pathlib.Path, metavar="TOOLS", help="another build, which takes turns as 'before'")
    parser.add_argument("--door", choices=["folder", "onnx"], default="folder", help="what Partita imports")
    parser.add_argument("--beside", type=int, default=0, metavar="N",
                        help="then measure again beside N busy processes, with every system's own way of waiting")
    parser.add_argument("--limit", type=float, help="fail where a ratio is above this")
    parser.add_argument("--json", type=pathlib.Path, default=harness.CACHE.parent / "inference.json",
                        metavar="FILE", help="all figures (default %(default)s)")
    return parser.parse_args()


def error_of(found, expected):
    """Largest error in units of the tolerance; at most 1 if the outputs agree."""
    if found.shape != expected.shape:
        raise RuntimeError(f"expected an output of shape {expected.shape}, found {found.shape}")
    tolerance = RELATIVE * np.abs(expected) + OF_SCALE * np.sqrt(np.mean(np.square(expected, dtype=np.float64)))
    error = np.max(np.abs(found.astype(np.float64) - expected) / tolerance)
    return float(error) if np.isfinite(error) else float("inf")


def measure(workload, threads, arguments):
    """One row: figures, spread and agreement of each system."""
    running = []
    row = {"workload": workload.name, "threads": threads, "ms": {}, "fastest_ms": {}, "error": {}, "failures": []}
    try:
        for name in arguments.peers:
            running.append(systems.Peer(name, workload, threads))
        outputs = {peer.name: peer.output() for peer in running}
        expected = outputs.get("pytorch", next(iter(outputs.values())))
        if not arguments.peers_only:
            for name in arguments.systems:
                devices = systems.Partita.PLANS[name][0]
                if workload.batch % devices or devices > 1 and threads == 1:
                    continue
                for suffix, tools in {"": arguments.tools, " before": arguments.against}.items():
                    if not tools:
                        continue
                    try:
                        partita = systems.Partita(name, suffix, workload, threads, tools, arguments.door)
                        outputs[partita.name] = partita.output(like=expected)
                        row.setdefault("compile_s", {})[partita.name] = partita.compile_s
                        running.append(partita)
                    except RuntimeError as error:  # continue with the other rows
                        row["failures"].append(str(error))
        row["error"] = {name: error_of(output, expected) for name, output in outputs.items()}
        rounds = {system.name: [] for system in running}
        for system in harness.turns(running, arguments.rounds):
            rounds[system.name].append(statistics.median(system.round(arguments.seconds, warmup=3)))
            print(".", end="", file=sys.stderr, flush=True)
        row["ms"] = {name: statistics.median(times) for name, times in rounds.items()}
        if arguments.beside:
            beside = {system.name: [] for system in running}
            with harness.busy(arguments.beside):
                for system in harness.turns(running, arguments.rounds):
                    beside[system.name].append(statistics.median(system.round(arguments.seconds, warmup=3)))
            row["beside_ms"] = {name: statistics.median(times) for name, times in beside.items()}
        row["fastest_ms"] = {name: min(times) for name, times in rounds.items()}
    finally:
        for system in running:
            system.close()
    for ratio, figures in (("ratio", row["ms"]), ("fastest_ratio", row["fastest_ms"])):
        if "partita" in figures:
            row[ratio] = figures["partita"] / min(time for name, time in figures.items() if name in arguments.peers)
    return row


def print_table(rows, names):
    def line(*cells):
        print("  ".join(f"{cell:>16}" if index else f"{cell:<14}" for index, cell in enumerate(cells)))

    print()
    ratios = ["partita / best", "(fastest rounds)"] if "partita" in names else []
    line("workload", "threads", *(f"{name} ms" for name in names), *ratios)
    for row in rows:
        figures = [f"{row['ms'][name]:.2f} (+{100 * (row['ms'][name] / row['fastest_ms'][name] - 1):.0f}%)"
                   if name in row["ms"] else "" for name in names]
        ratios = [f"{row['ratio']:.2f}", f"({row['fastest_ratio']:.2f})"] if "ratio" in row else []
        line(row["workload"], row["threads"], *figures, *ratios)
        if "beside_ms" in row:
            line("  beside others", "", *(f"{row['beside_ms'][name]:.2f} (x{row['beside_ms'][name] / row['ms'][name]:.1f})"
                                        if name in row["beside_ms"] else "" for name in names))
    print("\nms: median of rounds (and how far it is above the fastest round). On a busy machine, trust the last column.")


def main():
    arguments = parse_arguments()
    load, rows = harness.warn_if_busy(), []
    if arguments.beside:
        harness.leave_waiting_alone()
    for name in arguments.workloads:
        workload = workloads.find(name)
        here = pathlib.Path(__file__).resolve().parent
        # In a separate process, because making a model leaves gigabytes of memory behind.
        subprocess.run([sys.executable, str(here / "prepare.py"), name], check=True)
        for threads in arguments.threads:
            print(f"{name}, {threads} thread{'s' if threads > 1 else ''} ", end="", file=sys.stderr, flush=True)
            rows.append(measure(workload, threads, arguments))
            print("", file=sys.stderr)
    ours = [] if arguments.peers_only else [name + suffix for name in arguments.systems
                                            for suffix in ("", " before") if not suffix or arguments.against]
    names = ours + arguments.peers
    print_table(rows, names)
    versions = {package: importlib.metadata.version(package) for package in ("onnxruntime", "torch")}
    arguments.json.write_text(json.dumps({"cpu": harness.cpu_name(), "load": load, "versions": versions, "rounds": arguments.rounds,
                                          "door": arguments.door, "rows": rows}, indent=1))
    wrong = [f"{row['workload']}: {name}'s output is off by {error:.3g} times the tolerance"
             for row in rows for name, error in row["error"].items() if error > 1]
    wrong += [f"{row['workload']}: {failure}" for row in rows for failure in row["failures"]]
    if arguments.limit:
        wrong += [f"{row['workload']}, {row['threads']} threads: expected a ratio of at most {arguments.limit}, "
                  f"found {row['ratio']:.2f}"
                  for row in rows if row.get("ratio", 0) > arguments.limit]
    for message in wrong:
        print(message, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
