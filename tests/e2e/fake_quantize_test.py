"""--fake-quantize: the gradients and ranges of PyTorch's fake quantization, divided and undivided, and the same results as the integers."""

import json
import math
import os
import struct
import subprocess
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
TORCH = "tests/data/fake-quantize-tiny/layers.safetensors"
LLAMA = "tests/data/lora-tiny/llama"
SIZES = ("--dim", "batch=2,seq=8")
STEPS, AVERAGING = 3, 0.25
FAKE = ("--fake-quantize", "bits=8; averaging=%g" % AVERAGING)
WEIGHTS = ("fc1.weight", "fc2.weight")
NAMES = ("--name", "x:0=B", "--name", "fc1.weight:0=M")
DIVISIONS = {
    "undivided": (),
    "batch": ("--mesh", "d=2", "--shard", "B=d"),
    "hidden": ("--mesh", "t=2", "--shard", "M=t"),
    "both": ("--mesh", "d=2,t=2", "--shard", "B=d;M=t"),
    "zero": ("--mesh", "d=2", "--shard", "B=d", "--zero", "2"),
}
MODEL = """
func.func @main(%%x: tensor<8x12xf32> {nn.kind = "input", nn.name = "x"},
                %%fc1: tensor<16x12xf32> {nn.kind = "parameter", nn.name = "fc1.weight", nn.source = %s},
                %%fc2: tensor<6x16xf32> {nn.kind = "parameter", nn.name = "fc2.weight", nn.source = %s})
    -> (tensor<8x6xf32> {nn.name = "y"}) {
  %%0 = nn.dot_general %%x, %%fc1 contract = [1] x [1] : tensor<8x12xf32>, tensor<16x12xf32> -> tensor<8x16xf32>
  %%zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %%1 = arith.maximumf %%0, %%zero : tensor<8x16xf32>
  %%2 = nn.dot_general %%1, %%fc2 contract = [1] x [1] : tensor<8x16xf32>, tensor<6x16xf32> -> tensor<8x6xf32>
  return %%2 : tensor<8x6xf32>
}
"""

TWICE = """
func.func @main(%%x: tensor<8x12xf32> {nn.kind = "input", nn.name = "x"},
                %%w: tensor<12x12xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"%s", %d, 576, f32>})
    -> (tensor<8x12xf32> {nn.name = "y"}) {
  %%0 = nn.dot_general %%x, %%w contract = [1] x [1] : tensor<8x12xf32>, tensor<12x12xf32> -> tensor<8x12xf32>
  %%zero = arith.constant dense<0.0> : tensor<8x12xf32>
  %%1 = arith.maximumf %%0, %%zero : tensor<8x12xf32>
  %%2 = nn.dot_general %%1, %%w contract = [1] x [1] : tensor<8x12xf32>, tensor<12x12xf32> -> tensor<8x12xf32>
  return %%2 : tensor<8x12xf32>
}
"""


def read(path):
    """The tensors of a safetensors file of F32 and I8, as (shape, numbers); `offsets` has their first byte and size."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    tensors, offsets = {}, {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] in ("F32", "I8"):
            tensors[name] = (entry["shape"], memoryview(data)[begin:end].cast("f" if entry["dtype"] == "F32" else "b").tolist())
        offsets[name] = (begin, end - begin)
    return tensors, offsets


def write(path, tensors):
    header, body = {}, b""
    for name, (shape, values) in tensors.items():
        data = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def write_npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join("%d, " % size for size in shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % len(values), *values))


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    return memoryview(data[10 + struct.unpack("<H", data[8:10])[0]:]).cast("f").tolist()


class FakeQuantizeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.torch, offsets = read(TORCH)
        path = os.path.abspath(TORCH)
        cls.model_text = MODEL % tuple('#nn.file<"%s", %d, %d, f32>' % (path, *offsets[name]) for name in WEIGHTS)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("m.mlir"), "w", encoding="utf-8") as file:
            file.write(self.model_text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *arguments, code=0):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def compile(self, model, *options, code=0):
        return self.command(PARTITA, "compile", model, "-o", self.path("m.partita"), *options, code=code)

    def run_artifact(self, inputs):
        """The outputs by name."""
        write(self.path("in.safetensors"), inputs)
        self.command(PARTITA_RUN, self.path("m.partita"), "--inputs", self.path("in.safetensors"), "--output-dir", self.path("out"))
        return {name[:-4]: read_npy(self.path("out/" + name)) for name in os.listdir(self.path("out"))}

    def checkpoint(self, folder):
        tensors = {}
        for name in os.listdir(folder):
            if name.startswith("model") and name.endswith(".safetensors"):
                tensors.update(read(os.path.join(folder, name))[0])
        return tensors

    def train_step(self, inputs, target):
        """Runs one step that changes no weight, and returns the folder of its checkpoint."""
        arguments = []
        for name, (shape, values) in inputs.items():
            if name != "lr":
                write_npy(self.path(name + ".npy"), shape, values)
                arguments += ["--input", "%s=%s" % (name, self.path(name + ".npy"))]
        self.command(PARTITA_RUN, "train", self.path("m.partita"), *arguments, "--steps", "1", "--lr", "1e-30", "--checkpoint-dir", self.path(target))
        return self.path(target + "/step-00000001")

    def inputs(self, step):
        return {"x": self.torch["%d.x" % step], "targets": self.torch["%d.targets" % step], "lr": ([], [0.0])}

    def assert_close(self, found, expected, tolerance, what):
        self.assertEqual(len(found), len(expected), what)
        largest = max(map(abs, expected))
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a, b, delta=tolerance * largest, msg=what)

    # Ranges move, so that a wrong range in a step changes the next one.
    def test_steps_are_those_of_torch(self):
        for division, options in DIVISIONS.items():
            weights = ()
            for step in range(STEPS):
                with self.subTest(division=division, step=step):
                    train = ("--train", "sgd", "--weight-decay", "0", "--loss", "mse", *weights, *FAKE, *(NAMES + options if options else ()))
                    self.compile(self.path("m.mlir"), *train, "--gradients")
                    found = self.run_artifact(self.inputs(step))
                    self.assert_close(found["loss"], self.torch["%d.loss" % step][1], 1e-5, "loss")
                    for name in WEIGHTS:
                        self.assert_close(found["grad." + name], self.torch["%d.grad.%s" % (step, name)][1], 1e-5, name)
                    self.compile(self.path("m.mlir"), *train)
                    folder = self.train_step(self.inputs(step), "%s-%d" % (division, step))
                    weights = ("--weights", folder)
                    after = self.checkpoint(folder)
                    for name in WEIGHTS:
                        for end in ("_input_low", "_input_high"):
                            self.assert_close(after[name + end][1], self.torch["%d.%s%s" % (step, name, end)][1], 1e-6, name + end)
                        self.assertEqual(after[name], self.torch[name])

    def recorded(self):
        """The checkpoint of a step that recorded ranges."""
        self.compile(self.path("m.mlir"), "--train", "sgd", "--weight-decay", "0", "--loss", "mse", *FAKE)
        return self.train_step(self.inputs(0), "recorded")

    def test_fixed_ranges_stay(self):
        folder = self.recorded()
        fixed = ("--fake-quantize", "bits=8; ranges=fixed")
        self.compile(self.path("m.mlir"), "--train", "sgd", "--weight-decay", "0", "--loss", "mse", "--weights", folder, *fixed)
        after = self.checkpoint(self.train_step(self.inputs(2), "fixed"))
        for name in WEIGHTS:
            for end in ("_input_low", "_input_high"):
                self.assert_close(after[name + end][1], self.torch["0.%s%s" % (name, end)][1], 1e-6, name + end)

    # Products read the integers that training simulated.
    def test_integers_give_the_simulated_results(self):
        folder = self.recorded()
        fake = ("--weights", folder, *FAKE)
        inputs = {"x": self.torch["0.x"]}
        self.compile(self.path("m.mlir"), *fake)
        simulated = self.run_artifact(inputs)["y"]
        self.assert_close(simulated, self.torch["0.y"][1], 1e-5, "simulated")
        report = json.loads(self.command(PARTITA, "quantize", self.path("m.mlir"), *fake, "-o", self.path("q"), "--json"))
        self.assertEqual([layer["input_high"] > layer["input_low"] for layer in report["layers"]], [True, True])
        stored = read(self.path("q/model.safetensors"))[0]
        for name in WEIGHTS:
            shape, weight = self.torch[name]
            for row in range(shape[0]):
                numbers = weight[row * shape[1]:(row + 1) * shape[1]]
                scale = stored[name + "_scale"][1][row]
                self.assertAlmostEqual(scale, max(map(abs, numbers)) / 127 or 1, delta=1e-7)
        self.compile(self.path("q"))
        self.assert_close(self.run_artifact(inputs)["y"], simulated, 1e-5, "integers")
        # The checkpoint serves the model in floats, too.
        self.compile(self.path("m.mlir"), "--weights", folder)
        floats = self.run_artifact(inputs)["y"]
        self.assertNotEqual(floats, simulated)
        self.assert_close(floats, simulated, 0.05, "floats")

    def test_a_transformer(self):
        ids = [(i * i + 3) % 60 for i in range(2 * 8 * 50)]
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(struct.pack("<%dH" % len(ids), *ids))
        losses = {}
        for name, options in (("undivided", ()), ("divided", ("--mesh", "d=2,t=2", "--shard", "B=d;M=t,N=t")), ("microbatches", ("--microbatches", "2")),
                              ("pipeline", ("--microbatches", "2", "--mesh", "p=2", "--shard", "D=p"))):
            self.compile(LLAMA, *SIZES, "--train", "adamw", *FAKE, *options)
            self.command(PARTITA_RUN, "train", self.path("m.partita"), "--data", self.path("tokens.bin"), "--steps", "6", "--lr", "0.003",
                         "--checkpoint-dir", self.path(name), "--log", self.path(name + ".jsonl"))
            with open(self.path(name + ".jsonl"), encoding="utf-8") as file:
                losses[name] = [json.loads(line)["loss"] for line in file]
        self.assertEqual(len(losses["undivided"]), 6)
        # A sum in another order may round an activation to the next integer.
        for a, b in zip(losses["undivided"], losses["divided"]):
            self.assertAlmostEqual(a, b, delta=2e-3 * a)
        # A microbatch moves the ranges for the next one, in any stage.
        for a, b in zip(losses["microbatches"], losses["pipeline"]):
            self.assertAlmostEqual(a, b, delta=2e-3 * a)
        ranges = [{name: values for name, (_, values) in self.checkpoint(self.path(folder + "/step-00000006")).items() if "_input_" in name}
                  for folder in ("microbatches", "pipeline")]
        self.assertGreater(len(ranges[0]), 10)
        self.assertEqual(ranges[0].keys(), ranges[1].keys())
        for name, values in ranges[0].items():
            start = name.rsplit("_", 1)[0]
            width = ranges[0][start + "_high"][0] - ranges[0][start + "_low"][0]
            self.assertAlmostEqual(values[0], ranges[1][name][0], delta=1e-3 * width, msg=name)
        fake = (*SIZES, "--weights", self.path("undivided/step-00000006"), *FAKE)
        self.command(PARTITA, "quantize", LLAMA, *fake, "-o", self.path("q"))
        outputs = []
        for model, options in ((LLAMA, fake), (self.path("q"), ())):
            self.compile(model, *options)
            self.command(PARTITA_RUN, self.path("m.partita"), "--input", "input_ids=random:0:60", "--output-dir", self.path("out"))
            (name,) = os.listdir(self.path("out"))
            outputs.append(read_npy(self.path("out/" + name)))
        self.assert_close(outputs[1], outputs[0], 0.02, "logits")
        norm = math.sqrt(sum(x * x for x in outputs[0]))
        self.assertLess(math.sqrt(sum((x - y) ** 2 for x, y in zip(*outputs))), 5e-3 * norm)

    # A share of a step is less than the distance of two numbers of bf16.
    def test_ranges_of_layers_are_not_rounded_to_bf16(self):
        ids = [(i * i + 3) % 60 for i in range(2 * 8 * 50)]
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(struct.pack("<%dH" % len(ids), *ids))
        self.compile(LLAMA, *SIZES, "--train", "adamw", *FAKE, "--precision", "bf16")
        self.command(PARTITA_RUN, "train", self.path("m.partita"), "--data", self.path("tokens.bin"), "--steps", "6", "--lr", "0.003",
                     "--checkpoint-dir", self.path("bf16"))
        ranges = {name: values[0] for name, (_, values) in self.checkpoint(self.path("bf16/step-00000006")).items()
                  if "layers" in name and "_input_" in name}
        self.assertGreater(len(ranges), 10)
        exact = [name for name, value in ranges.items() if struct.unpack("<I", struct.pack("<f", value))[0] & 0xffff]
        self.assertGreater(len(exact), len(ranges) / 2)

    # A weight that multiplies two activations: each has its own range.
    def test_a_weight_used_twice(self):
        (first, size) = read(TORCH)[1]["fc1.weight"]
        self.assertGreaterEqual(size, 12 * 12 * 4)
        with open(self.path("twice.mlir"), "w", encoding="utf-8") as file:
            file.write(TWICE % (os.path.abspath(TORCH), first))
        model = self.path("twice.mlir")
        inputs = {"x": self.torch["0.x"]}
        self.compile(model)
        floats = self.run_artifact(inputs)
        self.compile(model, "--train", "sgd", "--weight-decay", "0", "--loss", "mse", *FAKE)
        folder = self.train_step({"x": self.torch["0.x"], "targets": ([8, 12], [0.0] * 96)}, "twice")
        after = self.checkpoint(folder)
        self.assertEqual(sorted(name for name in after if "_input_" in name), ["w_1_input_high", "w_1_input_low", "w_input_high", "w_input_low"])
        x = self.torch["0.x"][1]
        self.assert_close(after["w_input_low"][1] + after["w_input_high"][1], [min(x), max(x)], 1e-6, "x")
        self.assertEqual(after["w_1_input_low"][1], [0.0])  # of numbers behind a ReLU
        self.assertGreater(after["w_1_input_high"][1][0], 0)
        fake = ("--weights", folder, *FAKE)
        self.compile(model, *fake)
        simulated = self.run_artifact(inputs)
        self.assert_close(simulated["y"], floats["y"], 0.05, "simulated")
        self.command(PARTITA, "quantize", model, *fake, "-o", self.path("recorded"))
        self.compile(self.path("recorded"))
        self.assert_close(self.run_artifact(inputs)["y"], simulated["y"], 1e-5, "integers")
        write(self.path("data.safetensors"), inputs)
        self.command(PARTITA, "quantize", model, "--calibrate", self.path("data.safetensors"), "-o", self.path("measured"))
        self.compile(self.path("measured"))
        self.assert_close(self.run_artifact(inputs)["y"], floats["y"], 0.05, "measured")

    def test_refusals(self):
        model, train = self.path("m.mlir"), ("--train", "sgd", "--loss", "mse")
        for text, expected in (
                ("bits=4", "--fake-quantize: expected bits=8, found '4'"),
                ("", "--fake-quantize: expected bits=8, found ''"),
                ("bits=8; bits=8", "--fake-quantize: expected each name once, found 'bits'"),
                ("averaging=0", "--fake-quantize: expected averaging=X with X above 0 and up to 1, found '0'"),
                ("ranges=none", "--fake-quantize: expected ranges=moving or fixed, found 'none'"),
                ("inputs=maybe", "--fake-quantize: expected inputs=y or n, found 'maybe'"),
                ("keep", "--fake-quantize: expected keep=PATTERN, with others behind commas, found ''"),
                ("keep=,", "--fake-quantize: expected keep=PATTERN, with others behind commas, found ','"),
                ("averaging=0.1; ranges=fixed", "--fake-quantize: expected no averaging= with ranges=fixed"),
                ("inputs=n; averaging=0.1", "--fake-quantize: expected no averaging= with inputs=n"),
                ("ranges=moving; inputs=n", "--fake-quantize: expected no ranges= with inputs=n"),
                ("scales=2", "--fake-quantize: expected bits=, averaging=, ranges=, inputs=, embeddings=, convolutions= or "
                 "keep="),
        ):
            self.assertIn(expected, self.compile(model, *train, "--fake-quantize", text, code=2))
        for options, expected in (
                ((*train, "--fake-quantize", "keep=*.fc9"), "--fake-quantize: keep: expected patterns of weights, found none that matches '*.fc9'"),
                ((*train, "--fake-quantize", "keep=*"), "--fake-quantize: expected weights of matrix products, found none"),
                ((*train, "--fake-quantize", "ranges=fixed"), "--fake-quantize: expected --weights with a checkpoint that has ranges"),
                (("--fake-quantize", "ranges=moving"), "--fake-quantize: expected ranges= with --train"),
                (FAKE, "--fake-quantize: expected --weights with a checkpoint that has ranges of activations"),
        ):
            self.assertIn(expected, self.compile(model, *options, code=1))
        # A checkpoint without ranges, and one whose ranges no step has recorded.
        weights = {name: self.torch[name] for name in WEIGHTS}
        os.mkdir(self.path("plain"))
        write(self.path("plain/model.safetensors"), weights)
        self.assertIn("fc1.weight_input_low", self.compile(model, "--weights", self.path("plain"), *FAKE, code=1))
        os.mkdir(self.path("zeros"))
        write(self.path("zeros/model.safetensors"),
              {**weights, **{name + end: ([], [0.0]) for name in WEIGHTS for end in ("_input_low", "_input_high")}})
        quantize = (PARTITA, "quantize", model, "-o", self.path("q"))
        self.assertIn("--fake-quantize: expected a range of the input of fc1.weight that training has recorded, found 0 to 0",
                      self.command(*quantize, "--weights", self.path("zeros"), *FAKE, code=1))
        self.assertIn("fc1.weight_input_low", self.command(*quantize, "--weights", self.path("plain"), *FAKE, code=1))
        self.command(*quantize, "--weights", self.path("zeros"), *FAKE, "--keep", "fc1", code=2)
        self.assertFalse(os.path.exists(self.path("q")))


if __name__ == "__main__":
    unittest.main()
