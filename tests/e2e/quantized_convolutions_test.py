"""Convolutions of integers of 8 bits: nets quantized by onnxruntime and by `partita quantize --calibrate`, undivided and divided.

onnxruntime computed the expected results with every QuantizeLinear and DequantizeLinear as an operator of its own
(tests/peers/make_quantized_images.py). A sum near the middle between two integers may be rounded to either.
"""

import array
import json
import os
import struct
import subprocess
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
DATA = "tests/data/onnx-quantized"
CONVOLUTIONS = 6
SHAPE = [2, 3, 16, 16]
DIVISIONS = [("data=2", "B=data"), ("channels=2", "M=channels"), ("channels=2", "E=channels"), ("data=2,rows=2", "B=data,H=rows")]


class QuantizedConvolutionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(DATA + "/expected.json", encoding="utf8") as file:
            self.expected = json.load(file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments, code=0):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def run_model(self, model, *options):
        """The result, and the names of the convolutions that the library computed."""
        self.call(PARTITA, "compile", model, "-o", self.path("m.partita"), *options)
        profile = self.call(PARTITA_RUN, self.path("m.partita"), "--input", "x=%s/x.npy" % DATA, "--output-dir", self.path("out"),
                            "--profile")
        with open(self.path("out/y.npy"), "rb") as file:
            data = file.read()
        # A name, which ends with the implementation in brackets, then the number of calls.
        calls = []
        for line in profile.splitlines():
            if line.startswith("conv "):
                name, numbers = line.rsplit(")", 1)
                calls += [name] * int(numbers.split()[0])
        return memoryview(data[128:]).cast("f").tolist(), calls

    def assert_near(self, found, expected, most):
        self.assertEqual(len(found), len(expected))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found, expected)), most)

    def test_onnxruntimes_nets(self):
        for form in ("u8", "s8"):
            facts = self.expected[form]
            model = "%s/%s.onnx" % (DATA, form)
            whole, calls = self.run_model(model, "--dim", "batch=2")
            self.assert_near(whole, facts["y"], 1.001 * facts["step"])
            self.assertEqual(len(calls), CONVOLUTIONS)
            for call in calls:
                self.assertIn("u8 of u8 x i8", call)
            # Sums of integers do not fit f16; scales come after them.
            for precision in ("bf16", "f16"):
                narrow, _ = self.run_model(model, "--dim", "batch=2", "--precision", precision)
                self.assert_near(narrow, whole, 3 * facts["step"])
            for mesh, shard in DIVISIONS:
                with self.subTest(form=form, shard=shard):
                    divided, _ = self.run_model(model, "--dim", "batch=2", "--mesh", mesh, "--shard", shard)
                    self.assertEqual(divided, whole)

    def calibration(self):
        """Inputs as the net was quantized for: the same numbers again."""
        with open(DATA + "/x.npy", "rb") as file:
            numbers = array.array("f", file.read()[128:])
        header = json.dumps({"in.x": {"dtype": "F32", "shape": SHAPE, "data_offsets": [0, 4 * len(numbers)]}}).encode()
        with open(self.path("x.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + numbers.tobytes())
        return self.path("x.safetensors")

    def test_own_quantization(self):
        report = json.loads(self.call(PARTITA, "quantize", DATA + "/float.onnx", "--dim", "batch=2", "-o", self.path("q"), "--calibrate",
                                      self.calibration(), "--json"))
        rounded = [layer for layer in report["layers"] if "kept" not in layer]
        self.assertEqual(len(rounded), CONVOLUTIONS)
        # Two convolutions share an input.
        self.assertEqual(sum("input_low" in layer for layer in rounded), CONVOLUTIONS - 1)
        self.assertTrue(all(layer["decibels"] > 35 for layer in rounded), rounded)
        whole, calls = self.run_model(self.path("q"))
        self.assert_near(whole, self.expected["float"]["y"], 0.02)
        self.assertEqual(len(calls), CONVOLUTIONS)
        for call in calls:
            self.assertIn("of u8 x i8", call)
        for precision in ("bf16", "f16"):
            narrow, _ = self.run_model(self.path("q"), "--precision", precision)
            self.assert_near(narrow, whole, 0.02)
        for mesh, shard in DIVISIONS:
            with self.subTest(shard=shard):
                divided, _ = self.run_model(self.path("q"), "--mesh", mesh, "--shard", shard)
                # Sums of f32 that are near the middle between two integers.
                self.assert_near(divided, whole, 0.005)

    def test_weights_alone_stay(self):
        stay = self.call(PARTITA, "quantize", DATA + "/float.onnx", "--dim", "batch=2", "-o", self.path("q"), code=1)
        self.assertIn("stem.weight (read by nn.conv)", stay)
        self.assertIn("; give --calibrate DATA to round weights of convolutions to integers", stay)
        refused = self.call(PARTITA, "compile", DATA + "/float.onnx", "--dim", "batch=2", "-o", self.path("m.partita"), "--fake-quantize",
                            "bits=8; convolutions=y; inputs=n", code=2)
        self.assertIn("no convolutions=y with inputs=n", refused)


if __name__ == "__main__":
    unittest.main()
