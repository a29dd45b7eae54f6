"""Inference of 40 models of timm beside onnxruntime and PyTorch, through `partita bench`. README.md explains the table.

Usage: run.py [MODEL...] [--threads 1 2] [--batch 1 8]. Needs `setup.sh --torch`, partita and partita-run. Rows go to a JSON file as
they are ready, and a later run skips them.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = pathlib.Path(os.environ.get("PARTITA_BENCH_CACHE", "~/.cache/partita-bench")).expanduser()

MODELS = [
    # Convolutions.
    "resnet18", "resnet50", "resnext50_32x4d", "seresnet50", "densenet121", "vgg16_bn", "regnety_016", "regnetx_032", "repvgg_a2",
    "convnext_tiny", "convnextv2_tiny", "inception_next_tiny", "nfnet_f0", "hgnetv2_b2",
    # Depthwise convolutions and squeeze-excite.
    "mobilenetv2_100", "mobilenetv3_large_100", "mobilenetv4_conv_medium", "efficientnet_b0", "efficientnet_b3", "tf_efficientnetv2_s",
    "mnasnet_100", "ghostnet_100",
    # Convolutions and attention.
    "edgenext_small", "fastvit_t8", "efficientformerv2_s1", "mobilevit_s", "levit_256", "poolformer_s12", "coatnet_0_rw_224",
    "coatnet_1_rw_224", "maxvit_tiny_rw_224", "mvitv2_tiny", "pvt_v2_b1",
    # Attention, or products alone.
    "vit_small_patch16_224", "vit_base_patch16_224", "deit3_small_patch16_224", "swin_tiny_patch4_window7_224",
    "swinv2_tiny_window8_256", "beit_base_patch16_224", "mixer_b16_224",
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help="names of timm; default: the 40 of this file")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each system in each round (default %(default)s)")
    parser.add_argument("--against", nargs="+", default=["onnxruntime", "torch"])
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--again", action="store_true", help="repeat rows that are in the file")
    parser.add_argument("--table", action="store_true", help="print the table of the file and run nothing")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "bazel-bin",
                        help="where compiler/tools/partita and runtime/tools/partita-run are")
    parser.add_argument("--json", type=pathlib.Path, default=CACHE / "wild.json", metavar="FILE")
    return parser.parse_args()


def measure(name, batch, threads, arguments):
    """The rows of one export, which is made and deleted here. A dictionary with "problem" if it fails."""
    with tempfile.TemporaryDirectory(prefix="partita-wild-") as folder:
        # In a process of its own, because exporting leaves gigabytes of memory behind.
        done = subprocess.run([sys.executable, HERE / "export.py", name, str(batch), folder], capture_output=True, text=True)
        if done.returncode:
            return [{"threads": count, "problem": "export: " + done.stderr.strip().splitlines()[-1]} for count in threads]
        done = subprocess.run([arguments.tools / "compiler/tools/partita", "bench", f"{folder}/model.onnx", "--peer-model",
                               f"{folder}/model.pt2", "--python", sys.executable, "--threads", ",".join(map(str, threads)), "--rounds",
                               str(arguments.rounds), "--seconds", str(arguments.seconds), "--against", ",".join(arguments.against),
                               *([] if arguments.no_compile else ["--compile"]), "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
            return [{"threads": count, "problem": errors[0]} for count in threads]
        for line in done.stderr.splitlines():
            if line.startswith("warning"):
                print(f"{name}, batch {batch}: {line}", file=sys.stderr)
        return json.loads(done.stdout)["rows"]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_table(rows):
    """Ratios are Partita's time over the system's."""
    peers = ["onnxruntime", "torch", "torch-compile"]
    print(f"{'model':<30} {'batch':>5} {'threads':>7} {'ms':>9}", *(f"{peer:>13}" for peer in peers), f"{'worst':>6} {'memory':>6} {'rate':>5}")
    worst_ratios, failed = [], []
    for row in rows:
        head = f"{row['name']:<30} {row['batch']:>5} {row['threads']:>7}"
        if "problem" in row:
            failed.append(row)
            print(head, row["problem"])
            continue
        systems = {system["name"]: system for system in row["systems"]}
        ratios = [systems.get(peer, {}).get("ratio") for peer in peers]
        worst = max((ratio for ratio in ratios if ratio), default=None)
        memory = [systems["partita"]["peak_bytes"] / systems[peer]["peak_bytes"] for peer in peers[:1] if "peak_bytes" in systems.get(peer, {})]
        rate = f"{100 * row['product_share']:4.0f}%" if "product_share" in row else ""
        if worst:
            worst_ratios.append(worst)
        print(head, f"{systems['partita']['ms']:9.2f}", *(f"{ratio:13.2f}" if ratio else f"{'-':>13}" for ratio in ratios),
              f"{worst:6.2f}" if worst else f"{'-':>6}", f"{memory[0]:6.2f}" if memory else f"{'-':>6}", rate)
    if worst_ratios:
        print(f"\ngeometric mean of the worst ratio over {len(worst_ratios)} rows: {geometric_mean(worst_ratios):.3f}; "
              f"{sum(ratio > 1 for ratio in worst_ratios)} rows above 1, the largest {max(worst_ratios):.2f}; "
              f"{len(failed)} rows failed")


def main():
    arguments = parse_arguments()
    rows = json.loads(arguments.json.read_text())["rows"] if arguments.json.exists() else []
    if not arguments.table:
        sys.path.insert(0, str(HERE.parent))
        import harness

        harness.warn_if_busy()
        for name in arguments.models:
            for batch in arguments.batch:
                known = [] if arguments.again else [row["threads"] for row in rows if (row["name"], row["batch"]) == (name, batch)]
                threads = [count for count in arguments.threads if count not in known]
                if not threads:
                    continue
                print(f"{name}, batch {batch}", file=sys.stderr, flush=True)
                new = [dict(row, name=name, batch=batch, load=os.getloadavg()[0]) for row in measure(name, batch, threads, arguments)]
                rows = [row for row in rows if (row["name"], row["batch"]) != (name, batch) or row["threads"] not in threads] + new
                arguments.json.parent.mkdir(parents=True, exist_ok=True)
                arguments.json.write_text(json.dumps({"cpu": harness.cpu_name(), "rounds": arguments.rounds, "rows": rows}, indent=1))
    print_table([row for row in rows if row["name"] in arguments.models])
    return 1 if any("problem" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
