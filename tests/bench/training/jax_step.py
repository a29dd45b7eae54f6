"""A whole training step of GPT-2 small that JAX exported, with optax's AdamW: XLA against Partita, in one run, in alternating rounds; and
against Partita's own gradients and AdamW for a model of the same shapes.

Usage: jax_step.py [--batch 2] [--seq 256] [--threads 1 2] [--rounds 5] [--priority]. Needs `setup.sh --jax --flax`, and the tools built.

XLA and Partita begin with the same weights and take the same batch: losses of the first two steps must agree. A figure is the median over
rounds; each round is a fresh process of partita-run that takes a step before timing starts, or XLA's process, stopped in between. Memory
is the peak of the process, which for XLA includes its compiler. `--priority` runs timed processes before all others of the machine
(SCHED_FIFO; needs root).
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

RATE, DECAY = 1e-4, 0.01
LAYERS, WIDTH, VOCABULARY, LENGTH = 12, 768, 50257, 1024


def shapes():
    """Those of jax_models.gpt2, in its order."""
    norm, up, down = [(WIDTH,)] * 2, [(WIDTH, 4 * WIDTH), (4 * WIDTH,)], [(4 * WIDTH, WIDTH), (WIDTH,)]
    attention = [(WIDTH, 3, 12, 64), (3, 12, 64), (12, 64, WIDTH), (WIDTH,)]
    return [(VOCABULARY, WIDTH), (LENGTH, WIDTH), *([*norm, *attention, *norm, *up, *down] * LAYERS), *norm]


def weights():
    random = np.random.default_rng(1)
    return [random.standard_normal(shape, "float32") * np.float32(0.02) + np.float32(len(shape) == 1) for shape in shapes()]


def batch_of(arguments):
    text = np.random.default_rng(2).integers(0, VOCABULARY, (arguments.batch, arguments.seq + 1)).astype("int32")
    return {"ids": text[:, :-1].copy(), "targets": text[:, 1:].copy()}


def make_step():
    """The jitted step, and its optimizer."""
    import jax
    import jax_models
    import optax

    optimizer = optax.adamw(RATE, weight_decay=DECAY)

    def loss_of(params, ids, targets):
        logits = jax_models.gpt2(jax_models.Parameters(params, training=True), ids)
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def step(params, state, ids, targets):
        loss, gradients = jax.value_and_grad(loss_of)(params, ids, targets)
        changes, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, changes), state, loss

    return jax.jit(step, donate_argnums=(0, 1)), optimizer


def work(arguments):
    """XLA's process."""
    answers = harness.answers_file()
    os.environ["JAX_PLATFORMS"] = "cpu"
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(processors)[: arguments.threads[0]])  # XLA starts one thread per CPU that it sees at start
    import jax

    step, optimizer = make_step()
    batch = {name: jax.device_put(value) for name, value in batch_of(arguments).items()}
    params = [jax.device_put(value) for value in weights()]
    state = [params, jax.jit(optimizer.init)(params)]

    def run():
        *state[:], loss = step(*state, **batch)
        jax.block_until_ready(state)
        return float(loss)

    first = {"losses": [run(), run()]}
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), processors)  # that many threads, on any CPU
    harness.serve(answers, first, run)


def export(arguments, folder):
    """Writes step.mlirbc, and its states by their names: the weights, and zeros for AdamW's."""
    import jax
    import safetensors.numpy
    from jax import export as jax_export

    step, optimizer = make_step()
    params = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes()]
    exported = jax_export.export(step)(params, jax.eval_shape(optimizer.init, params), *batch_of(arguments).values())
    (folder / "step.mlirbc").write_bytes(exported.mlir_module_serialized)
    states = {"state.0.count": np.zeros((), np.int32)}
    for i, value in enumerate(weights()):
        states |= {f"params.{i}": value, f"state.0.mu.{i}": np.zeros_like(value), f"state.0.nu.{i}": np.zeros_like(value)}
    (folder / "weights").mkdir()
    safetensors.numpy.save_file(states, folder / "weights" / "model.safetensors")
    for name, value in batch_of(arguments).items():
        np.save(folder / f"{name}.npy", value)
        np.save(folder / f"{name}64.npy", value.astype("int64"))


class Partita:
    """A compiled program. Each round is a process that takes one step before timing starts."""

    def __init__(self, name, arguments, threads, folder, model, inputs, *options):
        self.name, self.artifact = name, folder / f"{name.replace(' ', '_')}.partita"
        self.prefix = ["chrt", "-f", 20] if arguments.priority else []
        self.report = harness.call([arguments.tools / "compiler/tools/partita", "compile", model, "-o", self.artifact, *options])
        self.command = [arguments.tools / "runtime/tools/partita-run", self.artifact, "--threads", threads]
        for key, value in inputs.items():
            self.command += ["--input", f"{key}={folder / value}.npy"]

    def losses(self, folder):
        found = []
        for steps in (1, 2):
            outputs = folder / f"outputs_{steps}"
            harness.call([*self.command, "--warmup", 0, "--repeat", steps, "--output-dir", outputs])
            found.append(float(np.load(next(outputs.glob("*.npy")))))
        return found

    def ask(self, warmup, repeat):
        report = json.loads(harness.call([*self.prefix, *self.command, "--warmup", warmup, "--repeat", repeat, "--json"]))
        return {"times_ms": report["times_ms"], "cpu_ms": report["cpu_ms"], "peak_bytes": report["memory"]["peak_process"]}

    def close(self):
        pass


def measure(arguments, threads, folder):
    sizes = ["--batch", arguments.batch, "--seq", arguments.seq, "--threads", threads]
    prefix = ["chrt", "-f", 20] if arguments.priority else []
    xla = harness.Peer("XLA", [*prefix, sys.executable, __file__, "--worker", *sizes], threads)
    systems = [xla]
    try:
        exported = Partita("Partita", arguments, threads, folder, folder / "step.mlirbc", {"ids": "ids", "targets": "targets"},
                           "--weights", folder / "weights")
        own = Partita("Partita own", arguments, threads, folder, "gpt2", {"input_ids": "ids64", "targets": "targets64", "lr": "lr", "step": "step"},
                      "--dim", f"batch={arguments.batch},seq={arguments.seq}", "--dropout", 0, "--train", "adamw", "--weight-decay", DECAY)
        systems += [exported, own]
        losses = exported.losses(folder)
        rounds = {system.name: [] for system in systems}
        for system in harness.turns(systems, arguments.rounds):
            rounds[system.name].append(system.ask(warmup=1, repeat=2))
            print(".", end="", file=sys.stderr, flush=True)
    finally:
        for system in systems:
            system.close()
    figures = {}
    for name, answers in rounds.items():
        figures[name] = {"ms": statistics.median(statistics.median(answer["times_ms"]) for answer in answers),
                         "cpu_ms": statistics.median(answer["cpu_ms"] for answer in answers),
                         "peak_bytes": max(answer["peak_bytes"] for answer in answers)}
    print(f"\n{threads} thread{'s' if threads > 1 else ''}: losses of XLA {xla.first['losses']}, of Partita {losses}")
    print(f"  {'':<14}{'ms':>9}{'CPU ms':>9}{'peak MB':>10}{'Partita / this':>18}{'of memory':>12}")
    ours = figures["Partita"]
    for name, row in figures.items():
        print(f"  {name:<14}{row['ms']:9.0f}{row['cpu_ms']:9.0f}{row['peak_bytes'] / 1e6:10.0f}{ours['ms'] / row['ms']:18.2f}"
              f"{ours['peak_bytes'] / row['peak_bytes']:12.2f}", flush=True)
    return np.allclose(losses, xla.first["losses"], rtol=1e-4, atol=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--priority", action="store_true", help="run timed processes before all others (SCHED_FIFO)")
    parser.add_argument("--tools", type=pathlib.Path, default=harness.ROOT / "bazel-bin",
                        help="where compiler/tools/partita and runtime/tools/partita-run are")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return 0
    harness.warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as name:
        folder = pathlib.Path(name)
        export(arguments, folder)
        np.save(folder / "lr.npy", np.float32(RATE))
        np.save(folder / "step.npy", np.int64(2))
        agree = [measure(arguments, threads, folder) for threads in arguments.threads]
    if not all(agree):
        print("jax_step.py: expected equal losses to 1e-4", file=sys.stderr)
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
