"""How near the predictions of `partita simulate --sweep` are to published steps.

    python3 tests/bench/planner/calibrate.py FOLDER [--partita bazel-bin/compiler/tools/partita] [--limit 0.10]

FOLDER has CSV files with the columns of a sweep (compiler/planner/README.md) and with what was measured: iter_time_s,
iter_time_s_derived or tokens_per_s. Prints, source by source, the mean absolute percentage error of the step's time, and
over sources the mean of theirs: sources count alike, however many rows they have. In groups of rows of one source that
differ in their division alone: the rank correlation, and the regret (how much slower than the fastest measured one the
one is that is predicted to be the fastest). Ends with 1 if the mean is above the limit. Needs nothing but Python.
"""

import argparse
import collections
import csv
import glob
import os
import statistics
import subprocess
import sys
import tempfile

# Computed by their authors, or of clusters of unknown size; or no steps at all.
SKIPPED = ("zero_memory", "zero_bubble_bubble_rates", "korthikanti_2022_memory", "korthikanti_2022_layer_time",
           "megatron_ci_golden", "model_family", "moe_arch", "nccl_collectives", "gemm_efficiency",
           "hardware_accelerators", "hardware_interconnects")
# What stays the same within a group.
SAME = ("model_family", "layers", "hidden", "heads", "ffn", "seq_len", "vocab", "n_gpus", "gpu", "gbs", "recompute",
        "precision", "framework", "task", "zero_stage")


def number(row, column):
    try:
        return float(row.get(column) or 0)
    except ValueError:
        return 0.0


def measured(row):
    """Seconds of a step, or 0."""
    time = number(row, "iter_time_s") or number(row, "iter_time_s_derived")
    if time:
        return time
    rate = number(row, "tokens_per_s") or number(row, "tokens_per_s_per_gpu") * number(row, "n_gpus")
    return number(row, "seq_len") * number(row, "gbs") / rate if rate else 0.0


def ranks(values):
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]


def correlation(a, b):
    """Of ranks; None if all of one are equal."""
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / spread ** 0.5 if spread else None


def sweep(partita, path, folder):
    output = os.path.join(folder, "predicted.csv")
    subprocess.run([partita, "simulate", "--sweep", path, "-o", output], check=True, stdout=subprocess.DEVNULL)
    with open(output, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--partita", default="bazel-bin/compiler/tools/partita")
    parser.add_argument("--limit", type=float, default=0.10)
    arguments = parser.parse_args()

    errors, groups = {}, collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(glob.glob(os.path.join(arguments.folder, "*.csv"))):
            source = os.path.basename(path)[:-4]
            if source in SKIPPED:
                continue
            found, refused = [], 0
            for row in sweep(arguments.partita, path, folder):
                time, predicted = measured(row), number(row, "predicted_iter_time_s")
                if not time:
                    continue
                if not predicted:
                    refused += 1
                    continue
                found.append(predicted / time - 1)
                groups[(source,) + tuple(row.get(column, "") for column in SAME)].append((predicted, time))
            if found:
                errors[source] = (found, refused)

    print("%-34s %6s %8s %8s %8s %8s" % ("source", "rows", "error", "median", "bias", "refused"))
    for source, (found, refused) in errors.items():
        print("%-34s %6d %7.1f%% %7.1f%% %+7.1f%% %8d" % (
            source, len(found), 100 * statistics.mean(map(abs, found)), 100 * statistics.median(map(abs, found)),
            100 * statistics.mean(found), refused))
    mean = statistics.mean(statistics.mean(map(abs, found)) for found, _ in errors.values())
    print("%-34s %6d %7.1f%%" % ("mean of the sources", sum(len(f) for f, _ in errors.values()), 100 * mean))

    by_source = collections.defaultdict(lambda: ([], []))
    for key, rows in groups.items():
        if len(rows) < 3:
            continue
        predicted, times = zip(*rows)
        rho = correlation(predicted, times)
        if rho is not None:
            by_source[key[0]][0].append(rho)
        by_source[key[0]][1].append(times[predicted.index(min(predicted))] / min(times) - 1)
    print("\ngroups that differ in their division alone, of 3 rows or more")
    for source, (rhos, regrets) in by_source.items():
        if rhos:
            print("%-34s %6d  rank correlation %.2f (median %.2f), regret %.1f%% in the median, %.1f%% on average" % (
                source, len(regrets), statistics.mean(rhos), statistics.median(rhos), 100 * statistics.median(regrets),
                100 * statistics.mean(regrets)))
    return 0 if mean <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
