"""Compiles and runs models from Python, with numpy alone."""

import ctypes
import os
import sys
import tempfile
import threading
import time
import unittest
import warnings

from checkout import DATA, golden, numpy

import partita
from partita_runtime import native, tensors

GPT2 = os.path.join(DATA, "gpt2", "model_eval.onnx")

DOUBLE = """
func.func @main(%x: tensor<2x4xbf16> {nn.kind = "input", nn.name = "x"}) -> (tensor<2x4xbf16> {nn.name = "y"}) {
  %0 = arith.addf %x, %x : tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}
"""


class BFloat16:
    """A tensor of bfloat16 in memory of its own, as another framework would hand it out."""

    def __init__(self, values):
        array = numpy.array(values, "float32")
        self.memory = (array.view("uint32") >> 16).astype("uint16")
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.managed = native.ManagedTensor(native.Tensor(self.memory.ctypes.data, native.Device(1, 0), array.ndim, native.Type(4, 16, 1),
                                                          self.shape, None, 0), None, native.DELETER())

    def __dlpack__(self):
        return tensors._new_capsule(ctypes.addressof(self.managed), b"dltensor", None)  # pylint: disable=protected-access


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = golden("gpt2")
        cls.ids, cls.expected = cls.golden["in.input_ids"], cls.golden["out.eval.y"]
        cls.net = partita.compile(GPT2, example={"input_ids": cls.ids})

    def expect_golden(self, found):
        self.assertEqual(found.dtype, numpy.float32)
        numpy.testing.assert_allclose(found, self.expected, rtol=1e-4, atol=1e-5)

    def test_neither_torch_nor_jax_is_imported(self):
        self.assertNotIn("torch", sys.modules)
        self.assertNotIn("jax", sys.modules)

    def test_a_call_computes_what_pytorch_computes(self):
        self.expect_golden(self.net(self.ids))
        self.expect_golden(self.net(input_ids=self.ids))
        self.expect_golden(self.net(self.ids.tolist()))

    def test_run_is_onnxruntimes(self):
        session = partita.Session(self.net.path)
        found = session.run(None, {"input_ids": self.ids})
        self.assertEqual(len(found), 1)
        self.expect_golden(found[0])
        self.expect_golden(session.run([session.get_outputs()[0].name], {"input_ids": self.ids})[0])
        self.assertEqual((session.get_inputs()[0].name, session.get_inputs()[0].type, session.get_inputs()[0].shape),
                         ("input_ids", "tensor(int64)", (2, 12)))
        self.assertEqual(session.get_inputs()[0].limit, 128)
        self.assertIn("input_ids: int64[2, 12]", repr(session))

    def test_arrays_of_any_memory(self):
        transposed = numpy.ascontiguousarray(self.ids.T).T
        self.assertFalse(transposed.flags.c_contiguous)
        self.expect_golden(self.net(transposed))
        memory = numpy.zeros(self.ids.size + 1, numpy.int64)  # 8 bytes beyond an aligned address
        memory[1:] = self.ids.ravel()
        self.expect_golden(self.net(memory[1:].reshape(self.ids.shape)))
        self.assertFalse(self.ids.flags.writeable)  # read-only arrays are inputs as well

    def test_results_are_new_arrays(self):
        first = self.net(self.ids)
        other = self.net((self.ids + 1) % 128)
        self.assertFalse(numpy.shares_memory(first, other))
        self.expect_golden(first)
        first[:] = 0  # they are writeable
        self.expect_golden(self.net(self.ids))

    def test_divided_over_devices(self):
        net = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, mesh={"data": 2, "tensor": 2}, shard=[{"B": "data"}, {"M": "tensor", "N": "tensor"}])
        self.assertEqual(net.report.devices, 4)
        self.expect_golden(net(self.ids))

    def test_bf16_precision(self):
        net = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, precision="bf16")
        numpy.testing.assert_allclose(net(self.ids), self.expected, rtol=0.1, atol=0.05)

    def test_bf16_tensors(self):
        """numpy has no bfloat16: it comes in by a capsule, and goes out as float32."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "double.mlir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(DOUBLE)
            net = partita.compile(path)
            self.assertEqual((net.inputs[0].dtype, net.inputs[0].shape), ("bfloat16", (2, 4)))
            found = net(BFloat16([[0, 1, 2, 3], [4.5, -5, 6, 256]]))
            numpy.testing.assert_array_equal(numpy.asarray(found, "float32"), [[0, 2, 4, 6], [9, -10, 12, 512]])
            with self.assertRaisesRegex(partita.InvalidError, r"expected bf16\[2,4\], found f32\[2,4\]"):
                net(numpy.zeros((2, 4), "float32"))

    def test_a_saved_artifact_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            net = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, embed_weights=True)
            path = net.save(os.path.join(folder, "m.partita"))
            with partita.Session(path, threads=1) as session:
                self.expect_golden(session(self.ids))
            with self.assertRaisesRegex(partita.InvalidError, "expected an open session"):
                session(self.ids)

    def test_two_threads_in_one_session(self):
        wrong = []

        def work():
            for _ in range(20):
                if not numpy.allclose(self.net(self.ids), self.expected, rtol=1e-4, atol=1e-5):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_forked_process_is_refused(self):
        self.net(self.ids)
        child = os.fork()
        if child == 0:
            try:
                self.net(self.ids)
                os._exit(1)
            except partita.UnavailableError as error:
                os._exit(0 if "forked" in str(error) else 2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.expect_golden(self.net(self.ids))

    def test_memory_of_dlpack_tensors_is_used(self):
        class Foreign:
            """A tensor of another framework."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

        ids = self.ids.copy()
        for value in (ids, Foreign(ids)):
            tensor = native.Tensor()
            held = tensors.fill(tensor, value, "int64")
            self.assertEqual(tensor.data + tensor.byte_offset, ids.ctypes.data)
            del held
            self.expect_golden(self.net(value))
        transposed, tensor = numpy.ascontiguousarray(ids.T).T, native.Tensor()
        held = tensors.fill(tensor, transposed, "int64")
        self.assertNotEqual(tensor.data, transposed.ctypes.data)  # gaps cannot be read in place
        del held


class RefusalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ids = golden("gpt2")["in.input_ids"]
        cls.net = partita.compile(GPT2, dims={"batch": 2, "seq": 12})

    def test_wrong_tensors(self):
        for value, message in ((self.ids.astype("int32"), r"input 'input_ids': expected i64\[2,12\], found i32\[2,12\]"),
                               (self.ids[:1], r"expected i64\[2,12\], found i64\[1,12\]"),
                               (self.ids + 1000, "expected a number below 128"),
                               (self.ids.astype(">i8"), "byte order"),
                               (self.ids.astype("float32").tolist(), "float64"),
                               (numpy.array([["a"]]), "expected an array of numbers")):
            with self.assertRaisesRegex(partita.InvalidError, message):
                self.net(value)
        self.net(self.ids)  # the session stays usable

    def test_wrong_names(self):
        with self.assertRaisesRegex(partita.InvalidError, r"expected the inputs input_ids: int64\[2, 12\], found ids"):
            self.net(ids=self.ids)
        with self.assertRaisesRegex(partita.InvalidError, "expected 1 inputs .*, found 2"):
            self.net(self.ids, self.ids)
        with self.assertRaisesRegex(partita.MissingError, "expected an output of y, found 'z'"):
            self.net.run(["z"], {"input_ids": self.ids})

    def test_wrong_files(self):
        with self.assertRaisesRegex(partita.MissingError, "absent.partita"):
            partita.Session("absent.partita")
        with tempfile.NamedTemporaryFile(suffix=".partita") as file:
            file.write(b"nonsense" * 100)
            file.flush()
            with self.assertRaises((partita.DataLossError, partita.InvalidError)):
                partita.Session(file.name)
        with self.assertRaisesRegex(partita.InvalidError, "expected the device cpu"):
            partita.Session(self.net.path, device="tpu")

    def test_errors_are_the_command_lines(self):
        with self.assertRaisesRegex(partita.CompileError, "^expected a model, found no file or folder 'absent.onnx'"):
            partita.compile("absent.onnx")
        with self.assertRaisesRegex(partita.UsageError, r"^partita compile has no option '--mesh-shape'"):
            partita.compile(GPT2, mesh_shape=2)
        with self.assertRaisesRegex(partita.UsageError, "did you mean 'tensor'"):
            partita.compile(GPT2, dims={"batch": 2, "seq": 12}, mesh={"tensor": 2}, shard="M=tensr")
        with self.assertRaisesRegex(partita.InvalidError, "found int$"):
            partita.compile(3)
        with self.assertRaisesRegex(partita.InvalidError, "found tuple without names"):
            partita.compile(GPT2, example=(self.ids,))

    def test_an_interrupt_stops_a_command(self):
        # The signal arrives while the model is compiled, and the next command is not affected.
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), 2))
        timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                partita.compile(GPT2, dims={"batch": 2, "seq": 12})
        self.assertLess(time.monotonic() - began, 30)
        self.net(self.ids)
        partita.compile(GPT2, dims={"batch": 2, "seq": 12})(self.ids)


class OverheadTest(unittest.TestCase):
    def test_a_call_costs_microseconds(self):
        """The time of a call of the smallest model above that of the C function, which is printed, not judged: machines differ."""
        net = partita.compile(GPT2, dims={"batch": 1, "seq": 1}, threads=1)
        ids = numpy.zeros((1, 1), numpy.int64)
        session = net.session
        net(ids)
        fast, arguments = session._numpy_types(numpy), (session._handle, session._first_input, 1, session._first_output, 1)
        self.assertTrue(session._set_inputs(fast, [ids]))
        output = numpy.zeros(128, numpy.float32)
        fast[1][0].data = output.__array_interface__["data"][0]

        def fastest(function, *values):
            times = []
            for _ in range(2000):
                begin = time.perf_counter()
                function(*values)
                times.append(time.perf_counter() - begin)
            times.sort()
            return 1e6 * times[len(times) // 2]

        of_c, of_python = fastest(native.lib.partita_run, *arguments), fastest(net, ids)
        print("median of a call: %.1f us, of the C function %.1f us, difference %.1f us" % (of_python, of_c, of_python - of_c))
        self.assertLess(of_python - of_c, 1000)


if __name__ == "__main__":
    warnings.simplefilter("error", partita.PartitaWarning)
    unittest.main(verbosity=1)
