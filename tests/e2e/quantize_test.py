"""`partita quantize`: models with weights, and activations, of 8 bits; divided and undivided; reports and refusals."""

import json
import math
import os
import struct
import subprocess
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
ONNX = "tests/data/onnx-tiny/%s/model_eval.onnx"
LLAMA = "tests/data/lora-tiny/llama"
TENSOR = ("--mesh", "tensor=2", "--shard", "M=tensor,N=tensor,V=tensor;L=tensor")
# Weights that a division by E sums over are divided, too.
FEATURES = ("--mesh", "data=2,tensor=2", "--shard", "B=data,E=tensor")


def write_tokens(path, name, shape, seed, below):
    """Writes token ids below `below` as a safetensors file of one tensor."""
    count = math.prod(shape)
    header = json.dumps({"in." + name: {"dtype": "I64", "shape": shape, "data_offsets": [0, 8 * count]}}).encode()
    ids = [(i * i + seed * i + seed) % below for i in range(count)]
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<%dq" % count, *ids))


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class QuantizeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def partita(self, *arguments, code=0):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def quantize(self, model, *options):
        """The report."""
        return json.loads(self.partita("quantize", model, "-o", self.path("q"), "--json", *options))

    def outputs(self, model, inputs, *options):
        """The first output's numbers."""
        self.partita("compile", model, "-o", self.path("m.partita"), *options)
        run = subprocess.run([PARTITA_RUN, self.path("m.partita"), "--inputs", inputs, "--output-dir", self.path("out"), "--profile"],
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.profile = run.stdout
        name = sorted(os.listdir(self.path("out")))[0]
        with open(self.path("out/" + name), "rb") as file:
            data = file.read()
        os.remove(self.path("out/" + name))
        return memoryview(data[128:]).cast("f").tolist()

    def assert_close(self, a, b, tolerance):
        self.assertEqual(len(a), len(b))
        self.assertLess(max(abs(x - y) for x, y in zip(a, b)), tolerance)

    def io(self, name):
        return "tests/data/onnx-tiny/%s/io.safetensors" % name

    def dims(self, name):
        with open("tests/data/onnx-tiny/%s/io.safetensors" % name, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        batch, *rest = next(header[key]["shape"] for key in sorted(header) if key.startswith("in."))
        return ("--dim", "batch=%d,seq=%d" % (batch, rest[0])) if name != "vit" else ("--dim", "batch=%d" % batch)

    def test_weights(self):
        for name in ("gpt2", "vit", "bert_mlm"):
            with self.subTest(model=name):
                model, dims = ONNX % name, self.dims(name)
                expected = self.outputs(model, self.io(name), *dims)
                report = self.quantize(model, *dims)
                found = self.outputs(self.path("q"), self.io(name))
                self.assertIn("f32 x i8", self.profile)
                self.assertGreater(cosine(found, expected), 0.999)
                self.assertNotEqual(found, expected)
                rounded = [layer for layer in report["layers"] if "kept" not in layer]
                self.assertGreater(len(rounded), 4)
                for layer in rounded:
                    self.assertGreater(layer["decibels"], 35)
                    self.assertAlmostEqual(layer["relative_error"], 10 ** (-layer["decibels"] / 20), delta=1e-6)
                    self.assertLess(layer["bytes_after"], 0.4 * layer["bytes_before"])
                saved = sum(layer["bytes_before"] - layer["bytes_after"] for layer in rounded)
                self.assertEqual(report["bytes_before"] - report["bytes_after"], saved)
                subprocess.run(["rm", "-r", self.path("q")], check=True)

    def test_float8_weights(self):
        model, dims = ONNX % "gpt2", self.dims("gpt2")
        expected = self.outputs(model, self.io("gpt2"), *dims)
        report = self.quantize(model, *dims, "--format", "e4m3")
        found = self.outputs(self.path("q"), self.io("gpt2"))
        self.assertGreater(cosine(found, expected), 0.995)
        self.assertNotEqual(found, expected)
        rounded = [layer for layer in report["layers"] if "kept" not in layer]
        self.assertGreater(len(rounded), 4)
        for layer in rounded:
            # 3 bits of fraction: errors are evenly distributed over at most 2^-4 of a number.
            self.assertGreater(layer["decibels"], 28)
            self.assertLess(layer["decibels"], 35)
            self.assertLess(layer["bytes_after"], 0.4 * layer["bytes_before"])
        self.assert_close(self.outputs(self.path("q"), self.io("gpt2"), *TENSOR), found, 1e-5)
        # The same weights for the folder's own model.
        self.assert_close(self.outputs(model, self.io("gpt2"), *dims, "--weights", self.path("q")), found, 1e-6)
        for options in (("--bits", "4"), ("--calibrate", self.folder)):
            self.assertIn("--format e4m3", self.partita("quantize", model, *dims, "-o", self.path("r"), "--format", "e4m3", *options,
                                                        code=2))

    def test_tables(self):
        model, dims = ONNX % "gpt2", self.dims("gpt2")
        expected = self.outputs(model, self.io("gpt2"), *dims)
        report = self.quantize(model, *dims, "--embeddings")
        kept = [layer["weight"] for layer in report["layers"] if "kept" in layer]
        self.assertNotIn("transformer.wpe.weight", kept)
        self.assertNotIn("transformer.wte.weight", kept)
        self.assertGreater(cosine(self.outputs(self.path("q"), self.io("gpt2")), expected), 0.999)
        self.partita("verify", self.path("q"), *TENSOR)

    # Layers share a function, whose weights become integers in all calls or in a copy of it.
    def test_layer_functions(self):
        write_tokens(self.path("ids.safetensors"), "input_ids", [2, 8], 3, 60)
        dims = ("--dim", "batch=2,seq=8")
        expected = self.outputs(LLAMA, self.path("ids.safetensors"), *dims)
        for keep in ((), ("--keep", "*.0.self_attn.*", "--keep", "mlp.up_proj")):
            with self.subTest(keep=keep):
                report = self.quantize(LLAMA, *dims, *keep)
                kept = {layer["weight"]: layer["kept"] for layer in report["layers"] if "kept" in layer}
                self.assertEqual([name for name in kept if ".self_attn.q_proj" in name],
                                 ["model.layers.0.self_attn.q_proj.weight"] if keep else [])
                self.assertEqual(sum(".up_proj" in name for name in kept), 2 if keep else 0)
                found = self.outputs(self.path("q"), self.path("ids.safetensors"))
                self.assertGreater(cosine(found, expected), 0.999)
                subprocess.run(["rm", "-r", self.path("q")], check=True)

    def test_inputs(self):
        name = "gpt2"
        model, dims = ONNX % name, self.dims(name)
        expected = self.outputs(model, self.io(name), *dims)
        report = self.quantize(model, *dims, "--calibrate", self.io(name))
        found = self.outputs(self.path("q"), self.io(name))
        self.assertIn("u8 x i8", self.profile)
        self.assertNotIn("f32 x i8", self.profile)
        self.assertGreater(cosine(found, expected), 0.99)
        measured = [layer for layer in report["layers"] if "input_low" in layer]
        self.assertGreater(len(measured), 4)
        for layer in measured:
            self.assertLess(layer["input_low"], layer["input_high"])
            self.assertGreater(layer["input_decibels"], 25)

    def test_ranges(self):
        name = "gpt2"
        model, dims, calibrate = ONNX % name, self.dims(name), ("--calibrate", self.io(name))
        expected = self.outputs(model, self.io(name), *dims)
        widths = {}
        for method in ("minmax", "percentile=100", "percentile=99", "entropy"):
            report = self.quantize(model, *dims, *calibrate, "--range", method)
            self.assertGreater(cosine(self.outputs(self.path("q"), self.io(name)), expected), 0.98, method)
            widths[method] = [layer["input_high"] - layer["input_low"] for layer in report["layers"] if "input_low" in layer]
            subprocess.run(["rm", "-r", self.path("q")], check=True)
        # The histogram's ends are the least and the greatest number.
        self.assert_close(widths["percentile=100"], widths["minmax"], 1e-4 * max(widths["minmax"]))
        for narrow, wide in zip(widths["percentile=99"], widths["minmax"]):
            self.assertLess(narrow, wide)
        for narrow, wide in zip(widths["entropy"], widths["minmax"]):
            self.assertLess(narrow, 1.0001 * wide)

    def write_product(self):
        """A product of x [4, 8], whose first column is large, and a weight."""
        numbers = [math.sin(3 * i + 1) for i in range(4 * 8 + 8 * 6)]
        x, w = numbers[:32], numbers[32:]
        x = [100 * value if i % 8 == 0 else value for i, value in enumerate(x)]
        offsets = {}
        for file, name, shape, values in (("x", "x", [4, 8], x), ("w", "w", [8, 6], w)):
            header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len(values)]}}).encode()
            offsets[file] = 8 + len(header)
            with open(self.path(file + ".safetensors"), "wb") as out:
                out.write(struct.pack("<Q", len(header)) + header + struct.pack("<%df" % len(values), *values))
        with open(self.path("m.mlir"), "w") as file:
            file.write("""
func.func @main(%%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
                %%w: tensor<8x6xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w.safetensors", %d, 192, f32>})
    -> (tensor<4x6xf32> {nn.name = "y"}) {
  %%0 = nn.dot_general %%x, %%w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return %%0 : tensor<4x6xf32>
}
""" % offsets["w"])
        return [sum(x[8 * i + k] * w[6 * k + j] for k in range(8)) for i in range(4) for j in range(6)]

    def test_large_channels(self):
        exact = self.write_product()
        errors = {}
        for strength in ("0", "0.7"):
            self.quantize(self.path("m.mlir"), "--calibrate", self.path("x.safetensors"), "--smooth", strength)
            found = self.outputs(self.path("q"), self.path("x.safetensors"))
            errors[strength] = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, exact)))
            self.assertGreater(cosine(found, exact), 0.999)
            subprocess.run(["rm", "-r", self.path("q")], check=True)
        self.assertLess(errors["0.7"], 0.6 * errors["0"])

    # A kernel of a 1x1 convolution that the model multiplies as a matrix.
    def test_kernel_of_1x1(self):
        exact = self.write_product()
        with open(self.path("m.mlir")) as file:
            text = file.read()
        text = text.replace("%w: tensor<8x6xf32>", "%k: tensor<8x6x1x1xf32>").replace(
            "  %0 =", "  %w = nn.reshape %k : tensor<8x6x1x1xf32> -> tensor<8x6xf32>\n  %0 =")
        with open(self.path("m.mlir"), "w") as file:
            file.write(text)
        for options, kind in (((), "f32 x i8"), (("--calibrate", self.path("x.safetensors")), "u8 x i8")):
            (layer,) = self.quantize(self.path("m.mlir"), *options)["layers"]
            self.assertEqual((layer["bytes_before"], layer["bytes_after"]), (192, 48 + 24))
            found = self.outputs(self.path("q"), self.path("x.safetensors"))
            self.assertIn(kind, self.profile)
            self.assertGreater(cosine(found, exact), 0.999)
            self.partita("verify", self.path("q"), "--mesh", "t=2", "--name", "x:1=E", "--shard", "E=t")
            subprocess.run(["rm", "-r", self.path("q")], check=True)

    def test_divided(self):
        for name, options in (("gpt2", ()), ("gpt2", ("--calibrate", self.io("gpt2"))), ("vit", ())):
            with self.subTest(model=name, options=options):
                self.quantize(ONNX % name, *self.dims(name), *options)
                whole = self.outputs(self.path("q"), self.io(name))
                for division in (TENSOR, FEATURES):
                    found = self.outputs(self.path("q"), self.io(name), *division)
                    # A sum in another order may round an activation to the next integer.
                    if options:
                        self.assertGreater(cosine(found, whole), 0.9999)
                    else:
                        self.assert_close(found, whole, 1e-5 * max(map(abs, whole)))
                    self.partita("verify", self.path("q"), *division)
                subprocess.run(["rm", "-r", self.path("q")], check=True)

    def test_least_signal_to_noise(self):
        model, dims = ONNX % "gpt2", self.dims("gpt2")
        decibels = sorted(layer["decibels"] for layer in self.quantize(model, *dims)["layers"] if "decibels" in layer)
        subprocess.run(["rm", "-r", self.path("q")], check=True)
        middle = decibels[len(decibels) // 2]
        report = self.quantize(model, *dims, "--min-snr", str(middle))
        for layer in report["layers"]:
            if "decibels" in layer:
                self.assertGreaterEqual(layer["decibels"], middle - 1e-9)
        self.assertIn("below --min-snr", [layer.get("kept") for layer in report["layers"]])
        self.outputs(self.path("q"), self.io("gpt2"))
        subprocess.run(["rm", "-r", self.path("q")], check=True)
        calibrate = ("--calibrate", self.io("gpt2"))
        report = self.quantize(model, *dims, *calibrate)
        subprocess.run(["rm", "-r", self.path("q")], check=True)
        decibels = sorted(layer["input_decibels"] for layer in report["layers"] if "input_low" in layer)
        least = decibels[2]  # most weights are above it, too
        report = self.quantize(model, *dims, *calibrate, "--min-snr", str(least))
        inputs = [layer for layer in report["layers"] if "input_low" in layer]
        self.assertGreater(len(inputs), 4)
        self.assertEqual([layer["keeps_input"] for layer in inputs], [layer["input_decibels"] < least for layer in inputs])
        self.assertIn(True, [layer["keeps_input"] for layer in inputs])
        self.outputs(self.path("q"), self.io("gpt2"))
        self.assertIn("f32 x i8", self.profile)
        self.assertIn("u8 x i8", self.profile)

    def refusal(self, *arguments, code=1):
        message = self.partita("quantize", *arguments, code=code)
        self.assertFalse(os.path.exists(self.path("q")), message)
        return message

    def test_refusals(self):
        model, q = (ONNX % "gpt2", *self.dims("gpt2")), ("-o", self.path("q"))
        self.assertIn("--keep: expected patterns of weights, found none that matches '*.lm_haed'; the first weights are ",
                      self.refusal(*model, *q, "--keep", "*.lm_haed"))
        self.assertIn("expected weights of matrix products to quantize, found none", self.refusal(*model, *q, "--keep", "*"))
        self.assertIn("--calibrate: expected a safetensors file of inputs, or a folder of such files, one for each run; found none in 'nowhere'",
                      self.refusal(*model, *q, "--calibrate", "nowhere"))
        os.mkdir(self.path("empty"))
        self.assertIn("found none in '", self.refusal(*model, *q, "--calibrate", self.path("empty")))
        self.assertIn("--calibrate: expected inputs of the model in tests/data/onnx-tiny/vit/io.safetensors",
                      self.refusal(*model, *q, "--calibrate", self.io("vit")))
        for text in ("median", "percentile=30", "percentile=x"):
            self.assertIn("expected --range minmax, entropy or percentile=P",
                          self.refusal(*model, *q, "--calibrate", self.io("gpt2"), "--range", text, code=2))
        self.refusal(*model, *q, "--range", "entropy", code=2)
        self.refusal(*model, *q, "--calibrate", self.io("gpt2"), "--smooth", "2", code=2)
        self.assertIn("has no option '--kep'", self.refusal(*model, *q, "--kep", "x", code=2))
        self.assertIn("expected -o", self.refusal(*model, code=2).replace("--output", "-o"))
        self.partita("quantize", *model, *q)
        self.assertIn("-o: expected the name of a new folder", self.partita("quantize", *model, *q, code=1))

    def test_a_weight_that_is_not_finite(self):
        with open(self.path("weights.safetensors"), "wb") as file:
            header = json.dumps({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
            file.write(struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, math.nan, 2, 3))
        with open(self.path("m.mlir"), "w") as file:
            file.write("""
func.func @main(%%x: tensor<1x2xf32> {nn.kind = "input", nn.name = "x"},
                %%w: tensor<2x2xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"weights.safetensors", %d, 16, f32>})
    -> (tensor<1x2xf32> {nn.name = "y"}) {
  %%0 = nn.dot_general %%x, %%w contract = [1] x [0] : tensor<1x2xf32>, tensor<2x2xf32> -> tensor<1x2xf32>
  return %%0 : tensor<1x2xf32>
}
""" % (8 + len(header)))
        self.assertIn("w: expected finite numbers, found nan", self.refusal(self.path("m.mlir"), "-o", self.path("q")))


if __name__ == "__main__":
    unittest.main()
