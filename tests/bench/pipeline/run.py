"""Measures the cost of a pipeline over two devices: a training step of GPT-2 small in microbatches on two single-thread devices,
compared with the undivided step on one thread.

The ideal is half of the undivided step plus the bubble: m microbatches take m + 1 turns. Systems alternate round by round, and a
figure is the median over rounds. The losses of the first two steps must equal the undivided step's. The model is imported by
name, with seeded weights.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

MICROBATCHES = 8
CLASSES = 50257
SCHEDULES = ("1f1b", "gpipe", "zb-h1", "interleaved(2)", "zb-v")
UNDIVIDED = "undivided"


class System:
    """A program, compiled once. Each round is a process that takes one step before timing starts."""

    def __init__(self, schedule, folder, arguments):
        self.schedule, self.folder = schedule, folder
        self.runner = arguments.tools / "runtime/tools/partita-run"
        self.artifact = folder / f"{schedule}.partita"
        plan = [] if schedule == UNDIVIDED else ["--mesh", "pipe=2", "--shard", "D=pipe", "--schedule", schedule]
        harness.call([arguments.tools / "compiler/tools/partita", "compile", "gpt2", "--dim",
                      f"batch={arguments.batch},seq={arguments.seq}", "--train", "adamw", "--microbatches", MICROBATCHES,
                      "-o", self.artifact, *plan])
        self.inputs = ["--threads", 1 if schedule == UNDIVIDED else 2]
        for name in ("input_ids", "targets"):
            self.inputs += ["--input", f"{name}={folder / (name + '.npy')}"]

    def losses(self):
        return json.loads(harness.call([self.runner, "train", self.artifact, *self.inputs, "--lr", "1e-4", "--steps", 2, "--quiet",
                                        "--json"]))["losses"]

    def ask(self, repeat):
        fixed = ["--input", f"lr={self.folder / 'lr.npy'}", "--input", f"step={self.folder / 'step.npy'}"]
        report = harness.call([self.runner, self.artifact, *self.inputs, *fixed, "--warmup", 1, "--repeat", repeat, "--json"])
        return statistics.median(json.loads(report)["times_ms"])


def write_inputs(folder, arguments):
    numbers = np.random.default_rng(1)
    text = numbers.integers(0, CLASSES, (arguments.batch, arguments.seq + 1))
    for name, value in (("input_ids", text[:, :-1]), ("targets", text[:, 1:]), ("lr", np.float32(1e-4)), ("step", np.int64(2))):
        np.save(folder / f"{name}.npy", value)


def measure(arguments):
    """Milliseconds of each system, after comparing their results."""
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as name:
        folder = pathlib.Path(name)
        write_inputs(folder, arguments)
        systems = [System(schedule, folder, arguments) for schedule in (UNDIVIDED, *arguments.schedules)]
        expected = systems[0].losses()
        for system in systems[1:]:
            found = system.losses()
            if not np.allclose(found, expected, rtol=1e-4, atol=0):
                raise SystemExit(f"{system.schedule}: expected the losses {expected} of the undivided step, found {found}")
        rounds = {system.schedule: [] for system in systems}
        for system in harness.turns(systems, arguments.rounds):
            rounds[system.schedule].append(system.ask(arguments.repeat))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {schedule: statistics.median(times) for schedule, times in rounds.items()}


def bubble_of(schedule):
    """The ratio of a step with the bubble to one without, on two devices, if all thirds of a layer's work take the same time."""
    turns = {"interleaved(2)": 2, "zb-h1": 3, "zb-v": 6}.get(schedule, 1) * MICROBATCHES
    return (turns + 1) / turns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schedules", nargs="*", default=["1f1b"], help=f"of {', '.join(SCHEDULES)} (default 1f1b)")
    parser.add_argument("--batch", type=int, default=MICROBATCHES)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2, help="measured steps in each round (default %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    for schedule in arguments.schedules:
        if schedule not in SCHEDULES:
            parser.error(f"expected a schedule of {', '.join(SCHEDULES)}, found {schedule}")
    if os.cpu_count() < 2:
        raise SystemExit("expected two processors at least, found one")
    harness.warn_if_busy()
    times = measure(arguments)
    undivided = times[UNDIVIDED]
    print(f"{harness.cpu_name()}; GPT-2 small, {MICROBATCHES} microbatches of {arguments.batch // MICROBATCHES}x{arguments.seq}")
    print(f"{'ms a step':16}{'measured':>10}{'ideal':>10}{'ratio':>8}")
    print(f"{UNDIVIDED:16}{undivided:10.1f}")
    for schedule in arguments.schedules:
        ideal = undivided / 2 * bubble_of(schedule)
        print(f"{schedule:16}{times[schedule]:10.1f}{ideal:10.1f}{times[schedule] / ideal:8.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))


if __name__ == "__main__":
    main()
