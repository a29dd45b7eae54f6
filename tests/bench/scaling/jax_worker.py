"""One model of jax_models.py in one division, for run.py; harness.py describes the protocol. The first answer has the beginning of
the result and the number of all-reduces that XLA made.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

model_name, division, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
devices = 1 if division == "none" else 2
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"

import jax  # noqa: E402: reads the environment
import jax_models  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402


def main():
    answers = harness.answers_file()
    model = jax_models.MODELS[model_name]
    random = np.random.default_rng(1)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("t",))
    inputs = jax_models.inputs_of(model, batch, random)
    parameters = jax_models.Parameters()
    jax.eval_shape(lambda x: model(parameters, x), inputs)
    values = [jax.device_put(random.standard_normal(shape, "float32") * 0.02,
                             NamedSharding(mesh, spec if division == "M.N" else PartitionSpec()))
              for shape, spec in parameters.made]
    inputs = jax.device_put(inputs, NamedSharding(mesh, PartitionSpec("t" if division == "B" else None)))
    step = jax.jit(lambda values, x: model(jax_models.Parameters(values), x)).lower(values, inputs).compile()
    outputs = jax.block_until_ready(step(values, inputs))
    first = np.asarray(jax.tree.leaves(outputs)[0]).reshape(-1)[:6].tolist()
    harness.serve(answers, {"first": first, "all_reduces": step.as_text().count(" all-reduce(")},
                  lambda: jax.block_until_ready(step(values, inputs)))


main()
