"""JAX's arrays in and out, in place: runs and training steps. Runs in the environment of tests/peers.

usage: jax_test.py [SETUP]: SETUP is tests/peers/setup.sh, which makes the environment; the test then runs there.
"""

import functools
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

if len(sys.argv) == 2:
    os.environ.setdefault("HOME", os.path.expanduser("~"))  # Bazel hides it
    python = subprocess.run([sys.argv[1], "--jax"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(python, [python, os.path.abspath(__file__)])

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp

from checkout import DATA, golden, numpy, targets

import partita
from partita_runtime import native, tensors

GPT2 = os.path.join(DATA, "gpt2")
DIMS = {"batch": 2, "seq": 12}

# f(x) = x + x, and results of other types.
DOUBLE = """
func.func @main(%x: tensor<SHAPExTYPE> {nn.kind = "input", nn.name = "x"}) ->
    (tensor<SHAPExTYPE> {nn.name = "y"}, tensor<4xi64> {nn.name = "counts"}, tensor<3xi1> {nn.name = "flags"}) {
  %y = arith.addf %x, %x : tensor<SHAPExTYPE>
  %counts = nn.iota dim = 0 : tensor<4xi64>
  %flags = arith.constant dense<[true, false, true]> : tensor<3xi1>
  return %y, %counts, %flags : tensor<SHAPExTYPE>, tensor<4xi64>, tensor<3xi1>
}
"""


def double(shape, dtype):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(DOUBLE.replace("SHAPE", shape).replace("TYPE", dtype))
        file.flush()
        return partita.compile(file.name)


class JaxTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = golden("gpt2")
        cls.ids, cls.expected = jnp.asarray(cls.golden["in.input_ids"]), cls.golden["out.eval.y"]
        cls.net = partita.compile(os.path.join(GPT2, "model_eval.onnx"), dims=DIMS)

    def address_of(self, value, dtype):
        tensor = native.Tensor()
        held = tensors.fill(tensor, value, dtype)
        del held
        return tensor.data + tensor.byte_offset

    def test_results_are_arrays_that_jax_computes_with(self):
        self.assertEqual(self.ids.dtype, jnp.int32)  # JAX's default: the model's ids are int64
        found = self.net(self.ids)
        self.assertIsInstance(found, jax.Array)
        numpy.testing.assert_allclose(found, self.expected, rtol=1e-4, atol=1e-5)
        numpy.testing.assert_array_equal(jax.jit(lambda y: 2 * y)(found), 2 * numpy.asarray(found))
        gradient = jax.grad(lambda y: (y * y).sum())(found)
        numpy.testing.assert_array_equal(gradient, 2 * numpy.asarray(found))
        out, = partita.Session(self.net.path).run(None, {"input_ids": self.ids})
        numpy.testing.assert_array_equal(out, found)
        with jax.enable_x64(True):
            numpy.testing.assert_array_equal(self.net(self.ids.astype("int64")), found)
        with self.assertRaisesRegex(partita.InvalidError, r"expected i64\[2,12\], found f32\[2,12\]"):
            self.net(self.ids.astype("float32"))

    def test_arrays_are_read_and_written_in_place(self):
        value = jnp.arange(64.0).reshape(8, 8)
        self.assertEqual(self.address_of(value, "float32"), value.unsafe_buffer_pointer())
        net, taken = double("8x8", "f32"), []
        take = tensors.take

        def noted(managed, kind):
            taken.append(managed.contents.tensor.data)
            return take(managed, kind)

        with unittest.mock.patch.object(tensors, "take", noted):
            results = net(value)
        kept, counts, flags = results
        self.assertEqual(len(taken), 3)
        self.assertEqual([kept.unsafe_buffer_pointer(), flags.unsafe_buffer_pointer()], [taken[0], taken[2]])
        self.assertEqual(counts.dtype, jnp.int32)  # which JAX copies int64 to, by default
        net.unload()
        del net, results
        numpy.testing.assert_array_equal(kept, 2 * value)  # results outlive the program
        self.assertEqual((counts.tolist(), flags.tolist()), ([0, 1, 2, 3], [True, False, True]))

    def test_bf16(self):
        value = jnp.array([[0, 1, 2, 3], [4.5, -5, 6, 256]], jnp.bfloat16)
        self.assertEqual(self.address_of(value, "bfloat16"), value.unsafe_buffer_pointer())
        found, _, _ = double("2x4", "bf16")(value)
        self.assertEqual(found.dtype, jnp.bfloat16)
        numpy.testing.assert_array_equal(found.astype("float32"), [[0, 2, 4, 6], [9, -10, 12, 512]])
        same, _, _ = double("2x4", "bf16")(numpy.asarray(value))  # ml_dtypes
        self.assertEqual(str(same.dtype), "bfloat16")
        numpy.testing.assert_array_equal(same, found)

    def test_values_that_jax_still_computes(self):
        net, size = double("512x512", "f32"), 512
        start = jax.random.normal(jax.random.key(0), (size, size))
        powers = jax.jit(lambda a: jax.lax.fori_loop(0, 50, lambda _, b: b @ a / jnp.linalg.norm(b), a))
        powers(start).block_until_ready()
        for shift in range(3):
            value = powers(start + shift)
            found, _, _ = net(value)  # begun, and not waited for
            numpy.testing.assert_array_equal(found, 2 * value)

    def test_arrays_divided_over_devices(self):
        mesh = jax.make_mesh((2,), ("x",))
        value = jnp.arange(64.0).reshape(8, 8)
        divided = jax.device_put(value, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
        self.assertEqual(len(divided.devices()), 2)
        found, _, _ = double("8x8", "f32")(divided)
        self.assertIsInstance(found, jax.Array)
        numpy.testing.assert_array_equal(found, 2 * value)

    def test_a_jitted_function_of_pytrees(self):
        weights = {"layers": [{"w": jnp.full((4, 8), 0.1), "b": jnp.arange(8.0)}, {"w": jnp.ones((8, 3)), "b": jnp.zeros(3)}]}

        def model(p, x, unused, *, scale):
            for layer in p["layers"]:
                x = jax.nn.gelu(x @ layer["w"] + layer["b"])
            return {"logits": x * scale, "rows": jnp.int32(x.shape[0])}

        x = jax.random.normal(jax.random.key(0), (2, 4))
        function = functools.partial(model, scale=2.0)
        net = partita.from_jax(function, weights, x, x)
        found, expected = net(weights, x, x), function(weights, x, x)
        self.assertEqual(jax.tree.structure(found), jax.tree.structure(expected))
        numpy.testing.assert_allclose(found["logits"], expected["logits"], rtol=1e-5, atol=1e-5)
        self.assertEqual((found["rows"].dtype, int(found["rows"])), (jnp.int32, 2))
        with self.assertRaisesRegex(partita.InvalidError, "^expected arguments of the structure"):
            net(weights, x)
        with self.assertRaisesRegex(partita.CompileError, "a call of 'lapack_"):
            partita.from_jax(jnp.linalg.cholesky, jnp.eye(3))

    def test_a_training_step_of_jax(self):
        def step(p, momentum, key, x, y):
            key, now = jax.random.split(key)

            def loss(p):
                kept = jax.random.bernoulli(now, 0.8, x.shape)
                return jnp.mean((jnp.where(kept, x / 0.8, 0) @ p["w"] + p["b"] - y) ** 2)

            value, g = jax.value_and_grad(loss)(p)
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, g)
            return jax.tree.map(lambda p, m: p - 0.1 * m, p, momentum), momentum, key, {"loss": value}

        p = {"w": jnp.ones((4, 3)), "b": jnp.zeros(3)}
        x, y = jax.random.normal(jax.random.key(1), (8, 4)), jnp.ones((8, 3))
        mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
        rows, whole = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (("data",), ()))
        for shardings in ({}, {"in_shardings": (whole, whole, whole, rows, rows), "out_shardings": (whole, whole, whole, None)}):
            start = p, jax.tree.map(jnp.zeros_like, p), jax.random.PRNGKey(5)
            net = partita.from_jax(jax.jit(step, donate_argnums=(0, 1, 2), **shardings), *start, x, y)
            self.assertEqual(net.program.session.device_count, 2 if shardings else 1)
            ours = theirs = start
            for _ in range(5):
                *ours, found = net(*ours, x, y)
                *theirs, expected = step(*theirs, x, y)
                self.assertAlmostEqual(float(found["loss"]), float(expected["loss"]), delta=1e-5)
            numpy.testing.assert_array_equal(ours[2], theirs[2])  # the key
            for found, expected in zip(jax.tree.leaves(ours[:2]), jax.tree.leaves(theirs[:2])):
                numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
            # Other values than those that the last call returned.
            *_, found = net(*start, x, y)
            *_, expected = step(*start, x, y)
            self.assertAlmostEqual(float(found["loss"]), float(expected["loss"]), delta=1e-5)

    def test_partition_specs(self):
        def loss(params, x):
            return (jnp.tanh(x @ params["up"]) @ params["down"]).sum()

        params, x = {"up": jnp.ones((8, 16)), "down": jnp.ones((16, 8)), "unused": jnp.ones(3)}, jnp.ones((4, 8))
        with tempfile.TemporaryDirectory() as folder:
            program, file = os.path.join(folder, "loss.mlirbc"), os.path.join(folder, "specs.json")
            with open(program, "wb") as output:
                output.write(jax.export.export(jax.jit(loss))(params, x).mlir_module_serialized)
            partita.annotate(program, file, mesh={"data": 2}, shard="B=data")
            specs, rows = partita.partition_specs(file, loss, params, x)
        self.assertEqual(rows, jax.sharding.PartitionSpec(("data",), None))
        self.assertEqual(specs["unused"], jax.sharding.PartitionSpec())
        mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
        places = jax.tree.map(lambda spec: jax.sharding.NamedSharding(mesh, spec), (specs, rows),
                              is_leaf=lambda value: isinstance(value, jax.sharding.PartitionSpec))
        found = jax.jit(loss, in_shardings=places)(params, x)
        self.assertAlmostEqual(float(found), float(loss(params, x)), places=4)

    def test_training(self):
        step = partita.compile(os.path.join(GPT2, "model_train.onnx"), dims=DIMS, train=partita.adamw(1e-3))
        start = step.init().parameters("jax")
        self.assertTrue(all(isinstance(value, jax.Array) for value in start.values()))
        state = step.init(start)
        batch = self.ids, jnp.asarray(targets("gpt2"))
        state, losses = step.train(state, [batch], steps=5)
        for found, expected in zip(losses, self.golden["losses"]):
            self.assertAlmostEqual(found, expected, delta=1e-4 * abs(expected))
        after = state.parameters()
        self.assertEqual({name: value.shape for name, value in after.items()}, {name: value.shape for name, value in start.items()})
        for name, value in after.items():
            self.assertIsInstance(value, jax.Array)
            self.assertGreater(float(jnp.abs(value - start[name]).max()), 0, name)
        # Steps do not reach into arrays that were handed out.
        kept = {name: numpy.array(value) for name, value in after.items()}
        step.train(state, [batch])
        for name, value in after.items():
            numpy.testing.assert_array_equal(value, kept[name])


if __name__ == "__main__":
    unittest.main(verbosity=1)
