"""JAX training one model of jax_models.py; harness.py describes the protocol. The first answer has the losses of the first two
steps, with weights that JAX initialises. The batch is divided over the devices.

Usage: jax_worker.py WORKLOAD PRECISION THREADS DEVICES
"""

import os
import sys

import workloads
import harness

name, precision, threads, devices = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
processors = os.sched_getaffinity(0)
os.sched_setaffinity(0, sorted(processors)[:threads])  # XLA starts one thread per CPU that it sees at start

import jax  # noqa: E402: reads the environment
import jax.numpy as jnp  # noqa: E402
import jax_models  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402


def loss_of(model, values, x, targets):
    if precision == "bf16":
        values, x = [value.astype(jnp.bfloat16) for value in values], x if x.dtype == jnp.int32 else x.astype(jnp.bfloat16)
    logits = model(jax_models.Parameters(values, training=True), x).astype(jnp.float32)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), targets[..., None], -1).mean()


def adamw(values, grads, m, v, count):
    w = workloads
    m = [w.BETA1 * a + (1 - w.BETA1) * g for a, g in zip(m, grads)]
    v = [w.BETA2 * a + (1 - w.BETA2) * g * g for a, g in zip(v, grads)]
    first, second = 1 - w.BETA1**count, jnp.sqrt(1 - w.BETA2**count)
    values = [p - w.RATE * (w.DECAY * p + a / first / (jnp.sqrt(b) / second + w.EPSILON)) for p, a, b in zip(values, m, v)]
    return values, m, v


def main():
    answers = harness.answers_file()
    workload = workloads.find(name)
    model = jax_models.MODELS[workload.model]
    x, targets = (value.astype("int32") if value.dtype == "int64" else value for value in workload.batch_of().values())
    x = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
    everywhere, divided = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("d"))
    parameters = jax_models.Parameters(training=True)
    jax.eval_shape(lambda x: model(parameters, x), x)
    random = np.random.default_rng(1)
    values = [jax.device_put(random.standard_normal(shape, "float32") * 0.02, everywhere) for shape, _ in parameters.made]
    state = [values, *([jax.device_put(np.zeros(shape, "float32"), everywhere) for shape, _ in parameters.made] for _ in "mv"), 1.0]
    x, targets = jax.device_put(x, divided), jax.device_put(targets, divided)

    def step(values, m, v, count, x, targets):
        loss, grads = jax.value_and_grad(lambda values: loss_of(model, values, x, targets))(values)
        return loss, *adamw(values, grads, m, v, count)

    step = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=everywhere)

    def run():
        loss, *moved = step(*state, x, targets)
        state[:] = [*jax.block_until_ready(moved), state[3] + 1]
        return float(loss)

    first = {"losses": [run(), run()]}
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), processors)  # that many threads, on any CPU
    harness.serve(answers, first, run)


main()
