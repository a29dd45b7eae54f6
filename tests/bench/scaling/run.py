"""Measures the cost of dividing over two devices: the throughput of divided programs on two single-thread devices, compared with the
machine's throughput without dividing: one program on two threads, or two independent programs with half the batch at once.

Systems alternate round by round; a figure is the median over rounds of each round's median. JAX stays loaded in separate
processes, stopped by a signal while another system runs. partita-run excludes its start from the times.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

MINILM = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 6,
          "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512,
          "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}
# Name: (model, batch, sizes of its other dimensions, inputs).
WORKLOADS = {"minilm-32x128": ("minilm", 32, ",seq=128", ["--input", "input_ids=random:0:30000", "--input", "attention_mask=ones"]),
             "vit-b-16-8": ("vit-b-16", 8, "", []),
             "coatnet-0-32": ("coatnet-0", 32, "", [])}
# Name: (mesh and entries, concurrent programs that share the batch, threads per program).
SYSTEMS = {"two threads": (None, 1, 2),
           "two programs": (None, 2, 1),
           "B=2": (("d=2", "B=d"), 1, 2),
           "M.N=2": (("t=2", "M=t,N=t"), 1, 2)}
# Name: the division in jax_worker.py, over two devices except for "none".
JAX_SYSTEMS = {"JAX": "none", "JAX B=2": "B", "JAX M.N=2": "M.N"}


def start_jax(python, model, batch):
    """JAX's systems. Divided results must equal undivided ones."""
    worker = pathlib.Path(__file__).resolve().with_name("jax_worker.py")
    peers = {system: harness.Peer(system, [python, worker, model, division, batch]) for system, division in JAX_SYSTEMS.items()}
    expected = peers["JAX"].first["first"]
    for system, peer in peers.items():
        if max(abs(a - b) for a, b in zip(expected, peer.first["first"])) > 1e-4:
            raise SystemExit(f"{system}: expected outputs beginning {expected}, found {peer.first['first']}")
    return peers


def compile_all(tools, folder, workloads):
    minilm = folder / "minilm"
    minilm.mkdir()
    (minilm / "config.json").write_text(json.dumps(MINILM))
    artifacts = {}
    for workload in workloads:
        model, batch, dims, _ = WORKLOADS[workload]
        for system, (plan, programs, _) in SYSTEMS.items():
            output = folder / f"{workload}-{system.replace(' ', '-')}.partita"
            command = [tools / "compiler/tools/partita", "compile", minilm if model == "minilm" else model, "--dim",
                       f"batch={batch // programs}{dims}", "-o", output]
            if plan:
                command += ["--mesh", plan[0], "--shard", plan[1]]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            artifacts[workload, system] = output
    return artifacts


def round_of(arguments, artifact, workload, system):
    """Items per second in one round. Concurrent programs are pinned to one CPU core each."""
    _, batch, _, inputs = WORKLOADS[workload]
    _, programs, threads = SYSTEMS[system]
    processes = []
    for i in range(programs):
        command = [*(harness.RUN_FIRST if arguments.priority else []), arguments.tools / "runtime/tools/partita-run", artifact, "--json",
                   "--threads", str(threads), "--repeat", str(arguments.repeat), "--random-inputs", "1", *inputs]
        if programs > 1:
            command = ["taskset", "-c", str(i), *command]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    rate = 0
    for process in processes:
        out, err = process.communicate(timeout=300)
        if process.returncode:
            raise SystemExit(err.decode())
        rate += batch / programs / json.loads(out)["median_ms"] * 1e3
    return rate


def measure(workload, artifacts, arguments):
    """Items per second of each system: the medians over rounds."""
    model, batch, _, _ = WORKLOADS[workload]
    peers = start_jax(arguments.jax, model, batch) if arguments.jax else {}
    order = [*SYSTEMS, *peers]
    rounds = {system: [] for system in order}
    for system in harness.turns(order, arguments.rounds):
        if system in peers:
            rate = batch / statistics.median(peers[system].ask(repeat=arguments.repeat)["times_ms"]) * 1e3
        else:
            rate = round_of(arguments, artifacts[workload, system], workload, system)
        rounds[system].append(rate)
    for peer in peers.values():
        peer.close()
    return {system: statistics.median(values) for system, values in rounds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help=f"of {', '.join(WORKLOADS)}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3, help="measured runs in each round (default %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin")
    parser.add_argument("--jax", metavar="PYTHON", help="measure JAX too, with this python (tests/peers/setup.sh --jax)")
    parser.add_argument("--priority", action="store_true", help="run Partita before all other processes (SCHED_FIFO; needs root)")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    for workload in arguments.workloads:
        if workload not in WORKLOADS:
            parser.error(f"expected a workload of {', '.join(WORKLOADS)}, found {workload}")
    if os.cpu_count() < 2:
        raise SystemExit("expected two processors at least, found one")
    with tempfile.TemporaryDirectory() as folder:
        artifacts = compile_all(arguments.tools, pathlib.Path(folder), arguments.workloads)
        figures = {workload: measure(workload, artifacts, arguments) for workload in arguments.workloads}
    columns = [*SYSTEMS, *(JAX_SYSTEMS if arguments.jax else [])]
    print(f"{'items/s':16}" + "".join(f"{system:>15}" for system in columns) + f"{'B=2 ratio':>12}{'M.N=2 ratio':>13}")
    for workload, row in figures.items():
        limit = max(row["two threads"], row["two programs"])
        print(f"{workload:16}" + "".join(f"{row[system]:15.1f}" for system in columns) +
              f"{row['B=2'] / limit:12.2f}{row['M.N=2'] / limit:13.2f}")
    print("ratio: over the faster of the two undivided ways")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
