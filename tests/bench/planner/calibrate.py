"""Measures how close predictions of other software are to published runs.

    ./bazelw build //tests/bench/planner:fit
    python3 tests/bench/planner/calibrate.py FOLDER [--fit bazel-bin/tests/bench/planner/fit] [--quick]

FOLDER has CSV files with the columns of a sweep (compiler/planner/README.md) and the measurements: iter_time_s,
iter_time_s_derived or tokens_per_s, mem_per_gpu_GB, status. Every file is a source; all sources have equal weight. Prints

1. per source, the error of the step time with constants fitted to all sources, with constants fitted without the source (not
   with --quick), and with the constants of this build;
2. in groups of rows of one source that differ only in their division: the rank correlation of all rows, the highest attainable
   one, and the regret, i.e. how much slower the division with the fastest prediction is than the fastest measured one. The mean
   of a division's rows counts. Attainable is the correlation of a prediction that is right, if rows of the same division
   scatter as those of this source do;
3. per source, the error of the memory of the fullest rank;
4. recall and precision for running out of memory.

Rows without a published division, and rows without a prediction, are left out of all four. Needs only Python and `fit`.
"""

import argparse
import collections
import csv
import glob
import io
import os
import random
import re
import statistics
import subprocess
import sys

# Columns with equal values within a group.
SAME = ("model_family", "layers", "hidden", "heads", "ffn", "seq_len", "vocab", "n_gpus", "gpu", "gbs", "recompute",
        "precision", "framework", "task", "zero_stage")
# Columns that describe a division.
DIVISION = ("tp", "pp", "dp", "cp", "ep", "vpp", "sp", "mbs", "zero_stage", "predicted_iter_time_s")
DRAWS = 200  # per group, for the attainable correlation
# Memory figures under exact flags, for memory.py. Its step times are excluded, because the tests run in a deterministic
# mode.
GOLDEN = "megatron_ci_golden"


def number(row, column):
    try:
        return float(row.get(column) or 0)
    except ValueError:
        return 0.0


def measured(row):
    """Seconds per step, or 0."""
    time = number(row, "iter_time_s") or number(row, "iter_time_s_derived")
    if time:
        return time
    rate = number(row, "tokens_per_s") or number(row, "tokens_per_s_per_gpu") * number(row, "n_gpus")
    return number(row, "seq_len") * number(row, "gbs") / rate if rate else 0.0


def memory(row):
    """Measured bytes in GB, or 0. Some tables print GiB and say so."""
    gib = re.search(r"\bGiB\b", row.get("notes") or "")
    return number(row, "mem_per_gpu_GB") * (1.073741824 if gib else 1)


def divided(row):
    return bool(row.get("tp")) or number(row, "n_gpus") == 1


def ran(row):
    return (row.get("status") or "ok").strip().lower() == "ok"


def ranks(values):
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]


def correlation(a, b):
    """Rank correlation; None if all values on one side are equal."""
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / spread ** 0.5 if spread else None


def predict(fit, path):
    """Rows of a table with predictions; none if it is not a table of configurations."""
    result = subprocess.run([fit, "--predict", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    rows = list(csv.DictReader(io.StringIO(result.stdout))) if result.returncode == 0 else []
    return [row for row in rows if row["predicted_iter_time_s"] and divided(row)]


def print_times(sources):
    print("\nconstants of this build\n%-30s %6s %8s %8s %8s" % ("source", "rows", "mean", "median", "bias"))
    means = []
    for source, rows in sources.items():
        errors = [number(row, "predicted_iter_time_s") / measured(row) - 1 for row in rows if measured(row)]
        if not errors:
            continue
        means.append(statistics.mean(map(abs, errors)))
        print("%-30s %6d %7.1f%% %7.1f%% %+7.1f%%" % (source, len(errors), 100 * means[-1], 100 * statistics.median(
            map(abs, errors)), 100 * statistics.mean(errors)))
    print("over sources: mean %.1f %%, median %.1f %%" % (100 * statistics.mean(means), 100 * statistics.median(means)))


def repetitions(group):
    """Measured seconds by division."""
    found = collections.defaultdict(list)
    for row in group:
        found[tuple(row.get(column, "") for column in DIVISION)].append(measured(row))
    return found


def scatter(groups):
    """Standard deviation of rows of the same division, relative to their mean."""
    squares = []
    for group in groups:
        for times in repetitions(group).values():
            if len(times) > 1:
                mean = statistics.mean(times)
                squares += [(time / mean - 1) ** 2 * len(times) / (len(times) - 1) for time in times]
    return statistics.mean(squares) ** 0.5 if squares else 0.0


def attainable(group, deviation, random):
    """Mean rank correlation between a division's mean and times that scatter around it."""
    means = [statistics.mean(times) for times in repetitions(group).values() for _ in times]
    return statistics.mean(correlation(means, [mean * random.gauss(1, deviation) for mean in means]) for _ in range(DRAWS))


def print_ranks(sources):
    print("\ngroups that differ in their division alone: correlation of 3 rows or more, regret of 2 divisions or more\n"
          "%-30s %6s %12s %8s %8s %11s %6s %12s %8s" % (
              "source", "groups", "correlation", "median", "scatter", "attainable", "groups", "mean regret", "median"))
    for source, rows in sources.items():
        groups = collections.defaultdict(list)
        for row in rows:
            if measured(row):
                groups[tuple(row.get(column, "") for column in SAME)].append(row)
        deviation = scatter(groups.values())
        draws = random.Random(0)
        rhos, best, regrets = [], [], []
        for group in groups.values():
            times = {division: statistics.mean(each) for division, each in repetitions(group).items()}
            if len(times) < 2:
                continue
            pick = min(times, key=lambda division: float(division[-1]))
            regrets.append(times[pick] / min(times.values()) - 1)
            rho = correlation([number(row, "predicted_iter_time_s") for row in group], [measured(row) for row in group])
            if len(group) >= 3 and rho is not None:
                rhos.append(rho)
                best.append(attainable(group, deviation, draws) if deviation else 1.0)
        if regrets:
            text = "%-30s %6d" % (source, len(rhos))
            text += " %12.2f %8.2f" % (statistics.mean(rhos), statistics.median(rhos)) if rhos else " " * 22
            text += " %7.1f%% %11.2f" % (100 * deviation, statistics.mean(best)) if rhos and deviation else " " * 21
            print(text + " %6d %11.1f%% %7.1f%%" % (len(regrets), 100 * statistics.mean(regrets), 100 * statistics.median(regrets)))


def print_memory(sources):
    print("\nmemory of the fullest rank\n%-30s %6s %8s %8s %8s" % ("source", "rows", "mean", "median", "bias"))
    for source, rows in sources.items():
        errors = [number(row, "predicted_mem_GB") / memory(row) - 1 for row in rows if memory(row)]
        if errors:
            print("%-30s %6d %7.1f%% %7.1f%% %+7.1f%%" % (source, len(errors), 100 * statistics.mean(map(abs, errors)),
                                                          100 * statistics.median(map(abs, errors)), 100 * statistics.mean(errors)))
    counts = collections.Counter((ran(row), row["fits"] == "y") for rows in sources.values() for row in rows)
    out, said = counts[False, False] + counts[False, True], counts[False, False] + counts[True, False]
    print("\nout of memory: %d rows, %d of them predicted so (recall %.2f); %d of %d rows predicted so ran out (precision %.2f); "
          "%d rows ran and are predicted to fit" % (out, counts[False, False], counts[False, False] / max(out, 1),
                                                    counts[False, False], said, counts[False, False] / max(said, 1),
                                                    counts[True, True]))
    for source, rows in sources.items():
        for row in rows:
            if ran(row) != (row["fits"] == "y"):
                print("wrong: %s %s, predicted %s GB" % (source, row.get("row_id", ""), row["predicted_mem_GB"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--fit", default="bazel-bin/tests/bench/planner/fit")
    parser.add_argument("--quick", action="store_true", help="do not fit: the constants of this build alone")
    arguments = parser.parse_args()
    if not arguments.quick:
        subprocess.run([arguments.fit, arguments.folder], check=True)
    sources = {}
    for path in sorted(glob.glob(os.path.join(arguments.folder, "*.csv"))):
        name = os.path.basename(path)[:-4]
        rows = predict(arguments.fit, path) if name != GOLDEN else []
        if rows:
            sources[name] = rows
    if not sources:
        sys.exit("%s: expected CSV files of configurations, found none" % arguments.folder)
    print_times(sources)
    print_ranks(sources)
    print_memory(sources)


if __name__ == "__main__":
    main()
