"""Runs the golden models through the C interface, called from C. Each model is compiled for one device and for two; its
results and its losses over five training steps are compared with PyTorch's. Runs in four threads with one session each.

    api_golden_test.py PARTITA PROGRAM SUPPRESSIONS

PROGRAM is api_golden, plain or built with a sanitizer. SUPPRESSIONS is ThreadSanitizer's file.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA, PROGRAM, SUPPRESSIONS = sys.argv[1:4]
MODELS = "tests/data/onnx-tiny"
NAMES = ["bert_mlm", "coatnet_64", "coatnet_bias", "gpt2", "gpt2_4l", "t5", "vit", "vit_3l"]
TWO_DEVICES = ["--mesh", "d=2", "--shard", "B=d"]


def flat(value):
    return [number for each in value for number in flat(each)] if isinstance(value, list) else [value]


class Golden:
    """The files of one model that a run needs, as raw elements."""

    def __init__(self, name, folder):
        self.model, self.folder = os.path.join(MODELS, name), folder
        with open(os.path.join(self.model, "io.safetensors"), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            self.header, self.data = json.loads(file.read(size)), file.read()

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def tensor(self, name):
        begin, end = self.header[name]["data_offsets"]
        return self.write(name, self.data[begin:end])

    def targets(self):
        with open(os.path.join(self.model, "targets.json"), encoding="utf-8") as file:
            numbers = flat(json.load(file)["targets"])
        return self.write("targets", struct.pack("<%dq" % len(numbers), *numbers))

    def sizes(self):
        """The value of --dim: rows of the batch, and lengths of sequences if inputs are token ids."""
        shapes = {name: entry["shape"] for name, entry in self.header.items() if name.startswith("in.")}
        first = next(iter(shapes.values()))
        sizes = {"batch": first[0]}
        if len(first) == 2:
            sizes["seq"] = first[1]
        if "in.decoder_input_ids" in shapes:
            sizes.update(seq=shapes["in.input_ids"][1], dec=shapes["in.decoder_input_ids"][1])
        return ",".join("%s=%d" % size for size in sizes.items())


class ApiGoldenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, golden, model, arguments):
        output = os.path.join(self.folder, "model.partita")
        subprocess.run([PARTITA, "compile", os.path.join(golden.model, model), "--dim", golden.sizes(), "-o", output, *arguments],
                       check=True, capture_output=True)
        described = subprocess.run([PARTITA, "inspect", output, "--json"], check=True, capture_output=True, text=True)
        return output, [port["name"] for port in json.loads(described.stdout)["inputs"]]

    def check(self, what, arguments):
        run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                             env={**os.environ, "TSAN_OPTIONS": "suppressions=" + SUPPRESSIONS})
        print(what, run.stdout.strip(), flush=True)
        self.assertEqual(run.returncode, 0, "%s: %s%s" % (what, run.stdout, run.stderr))

    def test_inference(self):
        for name in NAMES:
            golden = Golden(name, self.folder)
            for plan in [], TWO_DEVICES:
                with self.subTest(name=name, plan=plan):
                    model, ports = self.compile(golden, "model_eval.onnx", plan)
                    files = [golden.tensor("in." + port) for port in ports] + [golden.tensor("out.eval.y")]
                    self.check("%s on %d" % (name, 2 if plan else 1), [model, *files])

    def test_training(self):
        for name in NAMES:
            golden = Golden(name, self.folder)
            for plan in [], TWO_DEVICES:
                with self.subTest(name=name, plan=plan):
                    model, ports = self.compile(golden, "model_train.onnx", ["--train", "adamw", *plan])
                    files = [golden.targets() if port == "targets" else golden.tensor("in." + port)
                             for port in ports if port == "targets" or "in." + port in golden.header]
                    self.check("%s trained on %d" % (name, 2 if plan else 1),
                               ["--train", "0.001", model, *files, golden.tensor("losses")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
