"""Measures how close memory predictions are to the memory that training allocated.

    python3 tests/bench/planner/memory.py FOLDER [--partita bazel-bin/compiler/tools/partita] [--rows]

FOLDER has megatron_ci_golden.csv: peak bytes allocated by Megatron-LM's continuous tests on the last pipeline rank, which is the
rank that logs. Values missing in the table come from the tests' files: they run on eight devices, or on one node if their
name says so; data parallelism takes the remaining devices; the vocabulary is GPT-2's or BERT's. The table does not name the
attention implementation: TransformerEngine's is fused or not, depending on a flag and its version. Each row is predicted both
ways, and the closer prediction counts unless the software has only unfused attention.

Then, for the other files: runs that worked should be predicted to fit, and runs that ran out of memory (a `status` that is not
"ok") not to fit. Rows without a published division are left out. Needs only Python.
"""

import argparse
import collections
import csv
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile

GOLDEN = "megatron_ci_golden.csv"
# Rows that are not the training of one model, or whose size is not in the table: reinforcement learning beside an
# inference engine, image encoders, distillation; releases with an unknown number of nodes.
OTHER = ("grpo", "mimo", "multimodal", "llava", "mla", "reruns",
         "modelopt", "release")
# The same for models with experts: activations in host memory, states divided over a part of the replicas, another
# optimizer.
OTHER_EXPERTS = ("fsdp", "muon", "offloading", "instances")
# Cells of the confusion table: the run worked, and `fits`.
CELLS = ((True, "y"), (True, "n"), (False, "y"), (False, "n"))


def sweep(partita, path, folder):
    output = os.path.join(folder, "predicted.csv")
    subprocess.run([partita, "simulate", "--sweep", path, "-o", output], check=True, stdout=subprocess.DEVNULL)
    with open(output, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def golden_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kept = []
    for row in rows:
        if not row["mem_max_allocated_bytes_last"] or not row["layers"] or any(word in row["model"] for word in OTHER):
            continue
        if row["model_family"] not in ("gpt", "bert", "t5", "moe"):
            continue
        if row["moe_experts"] and any(word in row["model"] + row["zero_stage"] for word in OTHER_EXPERTS):
            continue
        row["n_gpus"] = row["gpus_per_node"] if "1node" in row["model"] else "8"
        # Memory does not depend on the global batch size.
        row["gbs"] = str(int(row["mbs"]) * 8 * 16)
        row["kv_heads"] = row["kv_heads"] or row["heads"]
        row["vocab"] = row["vocab"] or {"bert": "28996", "t5": "28996"}.get(row["model_family"], "50257")
        # Experts are divided like all other weights unless the test's name says otherwise.
        parts = re.search("etp([0-9])", row["model"])
        row["etp"] = parts.group(1) if parts and row["moe_experts"] else ""
        kept.append(row)
    return kept


def predict(partita, rows, framework, folder):
    path = os.path.join(folder, "rows.csv")
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(dict(row, framework=framework) for row in rows)
    return sweep(partita, path, folder)


def golden(partita, path, folder, show):
    rows = golden_rows(path)
    fused = predict(partita, rows, "Megatron-Core", folder)
    written = predict(partita, rows, "Megatron-Core, unfused attention", folder)
    errors, refused = collections.defaultdict(list), collections.Counter()
    for row, one, other in zip(rows, fused, written):
        if not one["predicted_mem_GB"]:
            refused[one["predicted_problem"]] += 1
            continue
        held = float(row["mem_max_allocated_bytes_last"]) / 1e9
        unfused = float(other["predicted_mem_last_rank_GB"]) / held - 1
        error = min(float(one["predicted_mem_last_rank_GB"]) / held - 1, unfused, key=abs)
        if row["transformer_impl"] == "local":
            error = unfused
        errors[row["model_family"] + " " + (row["transformer_impl"] or "default")].append(error)
        if show:
            print("%-100s %-5s %7.2f GB %+6.1f%%  fused %s, unfused %s" % (
                row["model"][:100], row["gpu"][:5], held, 100 * error, one["predicted_mem_last_rank_GB"],
                other["predicted_mem_last_rank_GB"]))
    return errors, refused


def ran(row):
    """True if the run had enough memory, False if not; None if its division was not printed."""
    if not row.get("tp") and row.get("n_gpus") != "1":
        return None
    return row.get("status", "ok").strip().lower() in ("", "ok")


def confusion(partita, folder):
    """Prints how many working runs, and how many runs that ran out of memory, are predicted to fit, and each wrong prediction."""
    print("\n%-34s %22s %22s" % ("", "ran, predicted", "out of memory, predicted"))
    print("%-34s %10s %11s %10s %13s" % ("", "to fit", "not to fit", "to fit", "not to fit"))
    total, wrong = collections.Counter(), []
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        with open(path, encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
        if os.path.basename(path) == GOLDEN or "gbs" not in header or "n_gpus" not in header:
            continue
        source, counts = os.path.basename(path)[:-4], collections.Counter()
        with tempfile.TemporaryDirectory() as scratch:
            for row in sweep(partita, path, scratch):
                if row["predicted_mem_GB"] and ran(row) is not None:
                    counts[ran(row), row["fits"]] += 1
                    if ran(row) != (row["fits"] == "y"):
                        wrong.append("%s %s: predicted %s GB" % (source, row["row_id"], row["predicted_mem_GB"]))
        total += counts
        print("%-34s %10d %11d %10d %13d" % (source, *(counts[key] for key in CELLS)))
    print("%-34s %10d %11d %10d %13d" % ("all", *(total[key] for key in CELLS)))
    for line in wrong:
        print("wrong: " + line)
    if not total[False, "y"] + total[False, "n"]:
        print("no row is of a run that ran out of memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--partita", default="bazel-bin/compiler/tools/partita")
    parser.add_argument("--rows", action="store_true", help="print every row of the golden file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        errors, refused = golden(arguments.partita, os.path.join(arguments.folder, GOLDEN), folder, arguments.rows)
        print("%-34s %6s %8s %8s %8s" % ("megatron_ci_golden", "rows", "error", "median", "bias"))
        everything = [error for found in errors.values() for error in found]
        for family, found in list(errors.items()) + [("all", everything)]:
            print("%-34s %6d %7.1f%% %7.1f%% %+7.1f%%" % (
                family, len(found), 100 * statistics.mean(map(abs, found)), 100 * statistics.median(map(abs, found)),
                100 * statistics.mean(found)))
        for problem, count in refused.items():
            print("%6d without prediction: %s" % (count, problem))
    confusion(arguments.partita, arguments.folder)
    return 0 if statistics.mean(map(abs, everything)) <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
