"""`partita quantize --bits 4`: models with weights of 4 bits; divided and undivided; other sizes; texts; reports and refusals."""

import json
import math
import os
import re
import struct
import subprocess
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
GPT2 = "tests/data/onnx-tiny/gpt2/model_eval.onnx"
BERT = "tests/data/onnx-tiny/bert_mlm/model_eval.onnx"
LLAMA = "tests/data/generating/llama"
DIVISIONS = (
    ("--mesh", "tensor=2", "--shard", "M=tensor"),
    ("--mesh", "tensor=2", "--shard", "N=tensor"),
    ("--mesh", "tensor=2", "--shard", "M=tensor,N=tensor,V=tensor;L=tensor"),
    ("--mesh", "data=2", "--shard", "B=data"),
    ("--mesh", "tensor=3", "--shard", "M=tensor;E=tensor"),
)


def read_safetensors(path):
    """{name: (shape, bytes)}"""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["shape"], data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write_safetensors(path, tensors):
    """Writes {name: (shape, floats)}."""
    header, offset = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * len(values)]}
        offset += 4 * len(values)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            file.write(struct.pack("<%df" % len(values), *values))


def read_entries(path):
    """{name: (dtype, shape, bytes)}"""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    return {name: (header[name]["dtype"], shape, bytes(data)) for name, (shape, data) in read_safetensors(path).items()}


def write_entries(path, tensors):
    """Writes {name: (dtype, shape, bytes)}."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def numbers_of(tensors, name):
    """The floats that the integers of a weight stand for, with the summed dimension last."""
    _, packed = tensors[name]
    scale = struct.unpack("<%df" % (len(tensors[name + "_scale"][1]) // 4), tensors[name + "_scale"][1])
    zero = tensors[name + "_zero"][1] if name + "_zero" in tensors else bytes([8]) * len(scale)
    group = 2 * len(packed) // len(scale)
    bits = [bit for byte in packed for bit in (byte & 15, byte >> 4)]
    return [f32(scale[i // group] * (bit - zero[i // group])) for i, bit in enumerate(bits)]


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class QuantizeGroupsTest(unittest.TestCase):
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

    def quantize(self, model, *options, bits="4"):
        """The report."""
        subprocess.run(["rm", "-rf", self.path("q")], check=True)
        return json.loads(self.partita("quantize", model, "-o", self.path("q"), "--bits", bits, "--json", *options))

    def outputs(self, model, inputs, *options):
        """The first output's numbers."""
        self.partita("compile", model, "-o", self.path("m.partita"), *options)
        run = subprocess.run([PARTITA_RUN, self.path("m.partita"), *inputs, "--output-dir", self.path("out"), "--profile"],
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

    def dims(self, name):
        shape = next(shape for key, (shape, _) in sorted(read_safetensors(self.inputs(name)[1]).items()) if key.startswith("in."))
        return ("--dim", "batch=%d,seq=%d" % tuple(shape[:2]))

    def inputs(self, name):
        return ("--inputs", "tests/data/onnx-tiny/%s/io.safetensors" % name)

    # The products of floats with the numbers that the integers stand for are the reference.
    def test_outputs(self):
        expected = self.outputs(GPT2, self.inputs("gpt2"), *self.dims("gpt2"))
        for options in ((), ("--asymmetric",)):
            with self.subTest(options=options):
                report = self.quantize(GPT2, *self.dims("gpt2"), "--group", "32", *options)
                found = self.outputs(self.path("q"), self.inputs("gpt2"))
                self.assertIn("f32 x i4", self.profile)
                self.assertGreater(cosine(found, expected), 0.98)
                tensors = read_safetensors(self.path("q/model.safetensors"))
                floats = {}
                for layer in report["layers"]:
                    name, shape = layer["weight"], layer["shape"]
                    if "kept" in layer:
                        continue
                    numbers = numbers_of(tensors, name)
                    if ".c_" in name or tensors[name][0][0] != shape[0]:  # stored [in, out]
                        rows, columns = shape
                        numbers = [numbers[j * rows + i] for i in range(rows) for j in range(columns)]
                    floats[name] = (shape, numbers)
                for name, (shape, data) in tensors.items():
                    if name not in floats and not name.endswith(("_scale", "_zero")):
                        floats[name] = (shape, memoryview(data).cast("f").tolist())
                os.makedirs(self.path("floats"), exist_ok=True)
                write_safetensors(self.path("floats/model.safetensors"), floats)
                whole = self.outputs(GPT2, self.inputs("gpt2"), *self.dims("gpt2"), "--weights", self.path("floats"))
                self.assert_close(found, whole, 1e-5 * max(map(abs, whole)))

    def test_report(self):
        report = self.quantize(GPT2, *self.dims("gpt2"), "--group", "32")
        rounded = [layer for layer in report["layers"] if "kept" not in layer]
        self.assertGreater(len(rounded), 4)
        for layer in rounded:
            self.assertGreater(layer["decibels"], 18)
            self.assertAlmostEqual(layer["relative_error"], 10 ** (-layer["decibels"] / 20), delta=1e-6)
            # 4 bits and a scale of 32 bits for each 32 numbers.
            self.assertEqual(layer["bytes_after"], layer["bytes_before"] * 5 // 32)
        saved = sum(layer["bytes_before"] - layer["bytes_after"] for layer in rounded)
        self.assertEqual(report["bytes_before"] - report["bytes_after"], saved)
        # Groups longer than a sum keep the weight.
        kept = {layer["weight"]: layer.get("kept") for layer in self.quantize(GPT2, *self.dims("gpt2"), "--group", "128")["layers"]}
        self.assertIsNone(kept["transformer.h.0.mlp.c_proj.weight"])
        self.assertEqual(kept["transformer.h.0.mlp.c_fc.weight"],
                         "its products sum over 32 numbers, no multiple of the group of 128; --group 32 divides them")

    def test_divided(self):
        for name, model, options in (("gpt2", GPT2, ("--asymmetric",)), ("bert_mlm", BERT, ())):
            self.quantize(model, *self.dims(name), "--group", "32", *options)
            whole = self.outputs(self.path("q"), self.inputs(name))
            for division in DIVISIONS:
                with self.subTest(model=name, division=division):
                    found = self.outputs(self.path("q"), self.inputs(name), *division)
                    self.assert_close(found, whole, 1e-5 * max(map(abs, whole)))
                    self.assertIn("f32 x i4", self.profile)
        self.quantize(GPT2, *self.dims("gpt2"), "--group", "32")
        self.partita("verify", self.path("q"), *DIVISIONS[2])

    # Groups and scales divide with a weight's rows, and with the dimension that is summed over.
    def test_divided_weights_are_stored_once(self):
        report = self.quantize(GPT2, *self.dims("gpt2"), "--group", "32")
        mlp = sum(layer["bytes_after"] for layer in report["layers"] if ".mlp." in layer["weight"])
        kilobytes = [float(re.search(r"parameters ([\d.]+) KB", self.partita("compile", self.path("q"), "-o", self.path("m.partita"), *division))
                           .group(1)) for division in ((), ("--mesh", "tensor=2", "--shard", "M=tensor"))]
        # Biases of the wide layers divide, too: 128 numbers in each of two layers.
        self.assertAlmostEqual(1000 * (kilobytes[0] - kilobytes[1]), mlp / 2 + 2 * 128 * 4 / 2, delta=150)

    # A folder's integers serve models of other sizes, and models with a cache, which generate text.
    def test_weights_for_other_sizes(self):
        ids = ("--input", "input_ids=random:0:90")
        for bits, kind in (("4", "f32 x i4"), ("8", "f32 x i8")):
            with self.subTest(bits=bits):
                self.quantize(LLAMA, "--dim", "batch=1,seq=4", *(("--group", "32") if bits == "4" else ()), bits=bits)
                found = self.outputs(LLAMA, ids, "--dim", "batch=2,seq=9", "--weights", self.path("q"))
                self.assertIn(kind, self.profile)
                self.quantize(LLAMA, "--dim", "batch=2,seq=9", *(("--group", "32") if bits == "4" else ()), bits=bits)
                whole = self.outputs(self.path("q"), ids)
                self.assert_close(found, whole, 1e-5 * max(map(abs, whole)))
                texts = [json.loads(self.partita("generate", LLAMA, "--weights", self.path("q"), "--ids", "5,6,7", "--max-new-tokens", "6", "--cache-length", "16",
                                                 "--ignore-end", "--json", *division))["tokens"]
                         for division in ((), ("--mesh", "tensor=2", "--shard", "N=tensor,M=tensor,V=tensor"))]
                self.assertEqual(texts[0], texts[1])

    # A checkpoint of frozen integers and adapters, in other files than the folder's.
    def test_checkpoints(self):
        data = "tests/data/qlora-tiny/llama/"
        lora = ("--lora", data + "adapter", "--dim", "batch=2,seq=8")
        ids = ("--input", "input_ids=random:0:60")
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(200) for b in (i * i % 61, 0)))
        for bits, kind in (("int4", "f32 x i4"), ("int8", "f32 x i8")):
            with self.subTest(bits=bits):
                weights = ("--weights", data + bits)
                before = self.outputs(data, ids, *lora, *weights)
                self.partita("compile", data, *lora, *weights, "--train", "adamw", "-o", self.path("t.partita"))
                for steps, rate in (("1", "1e-30"), ("2", "0.05")):
                    run = subprocess.run([PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", steps, "--lr",
                                          rate, "--checkpoint-dir", self.path(bits + steps)], capture_output=True, text=True, timeout=300)
                    self.assertEqual(run.returncode, 0, run.stderr)
                same = self.outputs(data, ids, *lora, "--weights", self.path(bits + "1/step-00000001"))
                self.assertIn(kind, self.profile)
                self.assertEqual(same, before)
                after = self.outputs(data, ids, *lora, "--weights", self.path(bits + "2/step-00000002"))
                self.assertGreater(max(abs(x - y) for x, y in zip(before, after)), 1e-3)

    # T5 has a program for its encoder and another one for its decoder.
    def test_caches_begin_empty(self):
        for model in ("llama", "t5"):
            self.quantize("tests/data/generating/" + model, "--dim", "batch=1,seq=4", "--group", "32")
            for cache in ("f32", "int8"):
                with self.subTest(model=model, cache=cache):
                    found = json.loads(self.partita("generate", "tests/data/generating/" + model, "--weights", self.path("q"), "--ids", "5,6,7", "--cache",
                                                    cache, "--max-new-tokens", "6", "--cache-length", "16", "--ignore-end", "--json"))
                    self.assertEqual(len(found["tokens"][0]), 6)

    # Layers share a function only if their integers have the same form.
    def test_layers_of_several_forms(self):
        merged = {}
        for layer, options in (("0", ()), ("1", ("--asymmetric",))):
            self.quantize(LLAMA, "--dim", "batch=1,seq=4", "--group", "32", *options)
            for name, value in read_entries(self.path("q/model.safetensors")).items():
                if "layers." not in name or "layers.%s." % layer in name:
                    merged[name] = value
        os.makedirs(self.path("mixed"), exist_ok=True)
        write_entries(self.path("mixed/model.safetensors"), merged)
        self.outputs(LLAMA, ("--input", "input_ids=random:0:90"), "--dim", "batch=2,seq=9", "--weights", self.path("mixed"))
        self.assertIn("f32 x i4", self.profile)

    # Folders of `partita quantize` take adapters, as models do; PEFT computed the outputs.
    def test_adapters(self):
        for model in ("llama", "gpt2"):
            data = "tests/data/qlora-tiny/%s/" % model
            for bits in ("int4", "int8"):
                with self.subTest(model=model, bits=bits):
                    found = self.outputs(data + bits, ("--inputs", data + "io.safetensors"), "--lora", data + "adapter")
                    _, expected = read_safetensors(data + "io.safetensors")[bits + ".out.y"]
                    expected = memoryview(expected).cast("f").tolist()
                    self.assert_close(found, expected, 1e-4 * max(map(abs, expected)))

    # onnxruntime's quantizer wrote these files, and onnxruntime ran them.
    def test_onnxruntime(self):
        for name in ("symmetric", "zeros", "blocks16"):
            for division in ((), DIVISIONS[2]):
                with self.subTest(file=name, division=division):
                    data = "tests/data/onnx-packed/" + name
                    found = self.outputs(data + ".onnx", ("--inputs", data + ".safetensors"), *self.dims("bert_mlm"), *division)
                    self.assertIn("f32 x i4", self.profile)
                    _, expected = read_safetensors(data + ".safetensors")["out.y"]
                    expected = memoryview(expected).cast("f").tolist()
                    self.assert_close(found, expected, 1e-4 * max(map(abs, expected)))

    def test_refusals(self):
        model, q = (GPT2, *self.dims("gpt2")), ("-o", self.path("q"))
        for words, code, expected in (
                (("--bits", "3"), 2, "--bits"),
                (("--bits", "4", "--group", "48"), 2, "--group"),
                (("--group", "64"), 2, "--bits"),
                (("--bits", "8", "--asymmetric"), 2, "expected --bits 4 with --group or --asymmetric, found --bits 8"),
                (("--bits", "4", "--calibrate", self.inputs("gpt2")[1]), 2, "expected no --calibrate with --bits 4"),
        ):
            self.assertIn(expected, self.partita("quantize", *model, *q, *words, code=code))
            self.assertFalse(os.path.exists(self.path("q")))
        self.quantize(LLAMA, "--dim", "batch=1,seq=4", "--group", "32")
        self.assertIn("expected integers of a weight",
                      self.partita("compile", "tests/data/generating/qwen3", "--dim", "batch=1,seq=4", "--weights", self.path("q"), "-o",
                                   self.path("m.partita"), code=1))


if __name__ == "__main__":
    unittest.main()
