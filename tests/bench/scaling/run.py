"""What dividing over two devices costs: throughput of divided programs on two single-thread devices, against what the machine
gives without dividing: one program on two threads, or two independent programs of half the batch at once.

Systems take turns, round by round; a figure is the median over rounds of each round's median.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
MINILM = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 6,
          "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512,
          "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}
BATCH = 32
WORKLOADS = {"minilm-32x128": ("minilm", ",seq=128", ["--input", "input_ids=random:0:30000", "--input", "attention_mask=ones"]),
             "coatnet-0-32": ("coatnet-0", "", [])}
# Name: (batch of a program, its mesh and entries, programs at once, threads of each)
SYSTEMS = {"two threads": (BATCH, None, 1, 2),
           "two programs": (BATCH // 2, None, 2, 1),
           "B=2": (BATCH, ("d=2", "B=d"), 1, 2),
           "M.N=2": (BATCH, ("t=2", "M=t,N=t"), 1, 2)}


def compile_all(tools, folder):
    minilm = folder / "minilm"
    minilm.mkdir()
    (minilm / "config.json").write_text(json.dumps(MINILM))
    artifacts = {}
    for workload, (model, dims, _) in WORKLOADS.items():
        for system, (batch, plan, _, _) in SYSTEMS.items():
            output = folder / f"{workload}-{system.replace(' ', '-')}.partita"
            command = [tools / "compiler/tools/partita", "compile", minilm if model == "minilm" else model, "--dim",
                       f"batch={batch}{dims}", "-o", output]
            if plan:
                command += ["--mesh", plan[0], "--shard", plan[1]]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            artifacts[workload, system] = output
    return artifacts


def round_of(tools, artifact, system, inputs, repeat):
    """Items a second in one round; programs at once are pinned to a processor each."""
    batch, _, programs, threads = SYSTEMS[system]
    processes = []
    for i in range(programs):
        command = [tools / "runtime/tools/partita-run", artifact, "--json", "--threads", str(threads), "--repeat", str(repeat),
                   "--random-inputs", "1", *inputs]
        if programs > 1:
            command = ["taskset", "-c", str(i), *command]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    rate = 0
    for process in processes:
        out, err = process.communicate(timeout=300)
        if process.returncode:
            raise SystemExit(err.decode())
        rate += batch / json.loads(out)["median_ms"] * 1e3
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3, help="measured runs in each round (default %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "bazel-bin")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if os.cpu_count() < 2:
        raise SystemExit("expected two processors at least, found one")
    with tempfile.TemporaryDirectory() as folder:
        artifacts = compile_all(arguments.tools, pathlib.Path(folder))
        figures = {}
        for workload, (_, _, inputs) in WORKLOADS.items():
            rounds = {system: [] for system in SYSTEMS}
            for index in range(arguments.rounds):
                order = list(SYSTEMS)
                for system in order[index % len(order):] + order[:index % len(order)]:
                    rounds[system].append(
                        round_of(arguments.tools, artifacts[workload, system], system, inputs, arguments.repeat))
            figures[workload] = {system: statistics.median(values) for system, values in rounds.items()}
    print(f"{'items/s':16}" + "".join(f"{system:>15}" for system in SYSTEMS) + f"{'B=2 ratio':>12}{'M.N=2 ratio':>13}")
    for workload, row in figures.items():
        limit = max(row["two threads"], row["two programs"])
        print(f"{workload:16}" + "".join(f"{row[system]:15.1f}" for system in SYSTEMS) +
              f"{row['B=2'] / limit:12.2f}{row['M.N=2'] / limit:13.2f}")
    print("ratio: over the faster of the two undivided ways")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
