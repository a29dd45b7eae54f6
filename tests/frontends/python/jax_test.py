"""JAX's arrays in and out, in place: runs and training steps. Runs in the environment of tests/peers.

usage: jax_test.py [SETUP]: SETUP is tests/peers/setup.sh, which makes the environment; the test then runs there.
"""

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
