"""Measures the error of `partita simulate` on this machine, with measurements of this machine: a training step of GPT-2 small,
ViT-B/16 and CoAtNet-0 under ten plans on two single-thread devices, and under the choice of `partita plan`.

    python3 tests/bench/planner/local.py [MODEL...] [--measure] [--rounds 3] [--tools bazel-bin] [--json FILE]

Plans alternate round by round; a plan's time is the median over rounds of each round's median. `--measure` measures the machine
first. `--operations N` lists, for the plan with the worst prediction, the N operations with the largest errors; it runs the plan
once more with profiling. Exits with 1 if a prediction is off by more than --limit, or a choice is slower than --regret allows.
Needs only Python; models are imported by name, with seeded weights.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

PIPE = ["--mesh", "p=2", "--shard", "D=p"]


def two(shard, *more):
    return ["--mesh", "d=2", "--shard", shard, *more]


TRANSFORMER = {
    "B": two("B=d"),
    "B, ZeRO-1": two("B=d", "--zero", "1"),
    "B, ZeRO-2, 2 microbatches": two("B=d", "--zero", "2", "--microbatches", "2"),
    "B, ZeRO-3": two("B=d", "--zero", "3"),
    "M, N": two("M=d,N=d"),
    "M, N, V": two("M=d,N=d,V=d"),
    "M, N, V; L": two("M=d,N=d,V=d;L=d"),
    "L": two("L=d"),
    "D, 1F1B, 4 microbatches": [*PIPE, "--microbatches", "4", "--schedule", "1f1b"],
    "D, ZB-H1, 4 microbatches": [*PIPE, "--microbatches", "4", "--schedule", "zb-h1"],
}
CONVOLUTIONS = {
    "B": two("B=d"),
    "B, ZeRO-1": two("B=d", "--zero", "1"),
    "B, ZeRO-2, 2 microbatches": two("B=d", "--zero", "2", "--microbatches", "2"),
    "B, ZeRO-3": two("B=d", "--zero", "3"),
    "H": two("H=d"),
    "M, N": two("M=d,N=d"),
    "H; M, N": two("H=d;M=d,N=d"),
    "W": two("W=d"),
    "D, 1F1B, 4 microbatches": [*PIPE, "--microbatches", "4", "--schedule", "1f1b"],
    "D, GPipe, 4 microbatches": [*PIPE, "--microbatches", "4", "--schedule", "gpipe"],
}
# Name: (sizes, inputs that are not random, plans).
MODELS = {
    "gpt2": ("batch=4,seq=256", ["input_ids=random:0:50257", "targets=random:0:50257"], TRANSFORMER),
    "vit-b-16": ("batch=8", ["targets=random:0:1000"], TRANSFORMER),
    "coatnet-0": ("batch=8", ["targets=random:0:1000"], CONVOLUTIONS),
}
CHOICE = "partita plan"


class System:
    """The program of one plan."""

    def __init__(self, model, name, plan, folder, arguments):
        self.name = name
        sizes, inputs, _ = MODELS[model]
        self.tool, self.runner = (arguments.tools / path for path in ("compiler/tools/partita", "runtime/tools/partita-run"))
        self.artifact = folder / f"{model}, {name}.partita"
        if name == CHOICE or not self.artifact.exists():
            harness.call([self.tool, "compile", model, "--dim", sizes, "--train", "adamw", "-o", self.artifact, *plan])
        self.inputs = ["--threads", "2", "--random-inputs", "1", "--input", "lr=zeros", "--input", "step=ones"]
        for text in inputs:
            self.inputs += ["--input", text]
        self.cluster, self.times = arguments.cluster, []

    def predict(self, operations=0):
        return json.loads(harness.call([self.tool, "simulate", self.artifact, "--cluster", self.cluster, "--operations", operations,
                                        "--json"]))

    def run(self, *options):
        return json.loads(harness.call([self.runner, self.artifact, *self.inputs, "--json", *options]))

    def measure(self, repeat):
        self.times.append(statistics.median(self.run("--warmup", "1", "--repeat", repeat)["times_ms"]) / 1e3)

    def seconds(self):
        return statistics.median(self.times)


def missed(system, count):
    """The operations of the first device with the largest differences, as (label, predicted ms, measured ms)."""
    predicted, found = collections.Counter(), {}
    for row in system.predict(1 << 20)["operations"]:
        predicted[row.get("label") or row["kind"]] += row["seconds"] * 1e3
    for row in system.run("--warmup", "1", "--repeat", "3", "--profile")["profile"]:
        if row.get("pipeline_rank", 0) == 0:
            found[row["name"]] = row["median_ms"]
    rows = collections.defaultdict(float)
    labels = sorted(predicted, key=len, reverse=True)
    for name, time in found.items():
        rows[next((label for label in labels if name.startswith(label)), name)] += time
    table = [(label, predicted.get(label, 0.0), rows.get(label, 0.0)) for label in {*predicted, *rows}]
    return sorted(table, key=lambda row: -abs(row[1] - row[2]))[:count]


def bench(model, folder, arguments):
    _, _, plans = MODELS[model]
    wanted = {name: plan for name, plan in plans.items() if not arguments.plans or name in arguments.plans}
    systems = [System(model, name, plan, folder, arguments) for name, plan in wanted.items()]
    if not arguments.plans or CHOICE in arguments.plans:
        chosen = folder / f"{model}.yaml"
        try:
            harness.call([systems[0].tool, "plan", model, "--dim", MODELS[model][0], "--cluster", arguments.cluster, "--devices", "2",
                          "-o", chosen])
            systems.append(System(model, CHOICE, ["--plan", chosen], folder, arguments))
        except RuntimeError as error:
            print(error, file=sys.stderr)
    for system in harness.turns(systems, arguments.rounds):
        system.measure(arguments.repeat)
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return systems


def show(model, systems, arguments):
    """Prints the model's rows and returns them."""
    print(f"{model}, {MODELS[model][0]}\n{'seconds a step':28}{'predicted':>10}{'measured':>10}{'ratio':>8}")
    rows = []
    for system in systems:
        predicted, measured = system.predict()["step_seconds"], system.seconds()
        rows.append({"model": model, "plan": system.name, "predicted": predicted, "measured": measured, "ratio": predicted / measured,
                     "rounds": system.times})
        print(f"{system.name:28}{predicted:10.3f}{measured:10.3f}{predicted / measured:8.3f}", flush=True)
    if arguments.operations:
        worst = max(zip(systems, rows), key=lambda pair: abs(pair[1]["ratio"] - 1))[0]
        print(f"\n{worst.name}: what is missed most, ms{'predicted':>51}{'measured':>10}")
        for label, predicted, found in missed(worst, arguments.operations):
            print(f"  {label[:74]:74}{predicted:10.2f}{found:10.2f}")
    print(flush=True)
    return rows


def verdict(rows, arguments):
    """Describes the results beyond the limits."""
    wrong = [f"{row['model']}, {row['plan']}: predicted {row['ratio']:.2f} of what was measured" for row in rows
             if abs(row["ratio"] - 1) > arguments.limit]
    for model in {row["model"] for row in rows}:
        own = [row for row in rows if row["model"] == model]
        choice = [row for row in own if row["plan"] == CHOICE]
        best = min(row["measured"] for row in own if row["plan"] != CHOICE)
        if not choice and not arguments.plans:
            wrong.append(f"{model}: partita plan chose none")
        elif choice and choice[0]["measured"] > best * (1 + arguments.regret):
            wrong.append(f"{model}: partita plan's choice takes {choice[0]['measured'] / best:.3f} of the fastest plan's time")
    errors = [abs(row["ratio"] - 1) for row in rows]
    print(f"mean error {100 * statistics.mean(errors):.1f} %, largest {100 * max(errors):.1f} %")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--plans", nargs="+", default=[], metavar="PLAN", help=f"only these of the ten and of {CHOICE!r}")
    parser.add_argument("--measure", action="store_true", help="run partita measure first")
    parser.add_argument("--cluster", default="local", help="default: what partita measure wrote at its usual place")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=2, help="measured steps in each round (default %(default)s)")
    parser.add_argument("--operations", type=int, default=0, metavar="N")
    parser.add_argument("--artifacts", type=pathlib.Path, metavar="FOLDER", help="compiled before, and kept; not the planner's choice")
    parser.add_argument("--limit", type=float, default=0.10)
    parser.add_argument("--regret", type=float, default=0.03)
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    for model in arguments.models:
        if model not in MODELS:
            parser.error(f"expected one of {', '.join(MODELS)}, found {model}")
    harness.warn_if_busy()
    if arguments.measure:
        subprocess.run([arguments.tools / "compiler/tools/partita", "measure", "--devices", "2"], check=True)
    rows = []
    print(harness.cpu_name())
    for model in arguments.models:
        with tempfile.TemporaryDirectory(prefix="partita-bench-") as own:
            rows += show(model, bench(model, arguments.artifacts or pathlib.Path(own), arguments), arguments)
    wrong = verdict(rows, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
