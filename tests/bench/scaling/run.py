"""What dividing over two devices costs: throughput of divided programs on two single-thread devices, against what the machine
gives without dividing: one program on two threads, or two independent programs of half the batch at once.

Systems take turns, round by round; a figure is the median over rounds of each round's median. JAX stays loaded in processes of its
own, stopped by a signal while another runs; partita-run times without its start.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
MINILM = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 6,
          "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512,
          "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}
BATCH = 32
# Name: (model, sizes of its dimensions, its inputs)
WORKLOADS = {"minilm-32x128": ("minilm", ",seq=128", ["--input", "input_ids=random:0:30000", "--input", "attention_mask=ones"]),
             "coatnet-0-32": ("coatnet-0", "", [])}
# Name: (batch of a program, its mesh and entries, programs at once, threads of each)
SYSTEMS = {"two threads": (BATCH, None, 1, 2),
           "two programs": (BATCH // 2, None, 2, 1),
           "B=2": (BATCH, ("d=2", "B=d"), 1, 2),
           "M.N=2": (BATCH, ("t=2", "M=t,N=t"), 1, 2)}
# Name: how jax_worker.py divides, over two devices unless not at all.
JAX_SYSTEMS = {"JAX": "none", "JAX B=2": "B", "JAX M.N=2": "M.N"}


class Jax:
    """JAX with one model in one division, in a process that is stopped when it is not its turn."""

    def __init__(self, python, model, division):
        worker = pathlib.Path(__file__).with_name("jax_worker.py")
        self.process = subprocess.Popen([python, worker, model, division, str(BATCH)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.first = self._answer()["first"]
        os.kill(self.process.pid, signal.SIGSTOP)

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"JAX ended with code {self.process.wait()}; its messages are above")
        return json.loads(line)

    def round(self, repeat):
        os.kill(self.process.pid, signal.SIGCONT)
        print(repeat, file=self.process.stdin, flush=True)
        rate = BATCH / self._answer()["median_ms"] * 1e3
        os.kill(self.process.pid, signal.SIGSTOP)
        return rate

    def close(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def start_jax(python, model):
    """JAX's systems; what is divided must compute what is not."""
    peers = {system: Jax(python, model, division) for system, division in JAX_SYSTEMS.items()}
    expected = peers["JAX"].first
    for system, peer in peers.items():
        if max(abs(a - b) for a, b in zip(expected, peer.first)) > 1e-4:
            raise SystemExit(f"{system}: expected outputs beginning {expected}, found {peer.first}")
    return peers


def compile_all(tools, folder, workloads):
    minilm = folder / "minilm"
    minilm.mkdir()
    (minilm / "config.json").write_text(json.dumps(MINILM))
    artifacts = {}
    for workload in workloads:
        model, dims, _ = WORKLOADS[workload]
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


def measure(workload, artifacts, arguments):
    """Items a second of each system: the medians over rounds."""
    model, _, inputs = WORKLOADS[workload]
    peers = start_jax(arguments.jax, model) if arguments.jax else {}
    order = [*SYSTEMS, *peers]
    rounds = {system: [] for system in order}
    for index in range(arguments.rounds):
        turn = index % len(order)
        for system in order[turn:] + order[:turn]:
            if system in peers:
                rate = peers[system].round(arguments.repeat)
            else:
                rate = round_of(arguments.tools, artifacts[workload, system], system, inputs, arguments.repeat)
            rounds[system].append(rate)
    for peer in peers.values():
        peer.close()
    return {system: statistics.median(values) for system, values in rounds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help=f"of {', '.join(WORKLOADS)}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3, help="measured runs in each round (default %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "bazel-bin")
    parser.add_argument("--jax", metavar="PYTHON", help="measure JAX too, with this python (tests/peers/setup.sh --jax)")
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
