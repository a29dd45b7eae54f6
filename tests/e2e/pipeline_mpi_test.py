"""Golden models train as pipelines in processes of Open MPI. Losses equal the threads' bit for bit, and PyTorch's."""

import array
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT = sys.argv[1:4]
del sys.argv[1:4]
DATA = "tests/data/onnx-tiny/"
# Sizes of the recorded inputs. coatnet_64 has a recording with two microbatches, with the statistics of the parts.
MODELS = {
    "coatnet_64": ("batch=8", "micro2.losses"),
    "gpt2_4l": ("batch=8,seq=12", "losses"),
    "t5": ("batch=2,seq=12,dec=7", "losses"),
    "vit_3l": ("batch=8", "losses"),
}
PLANS = {"D2": ("pipe=2", "D=pipe"), "D2B2": ("pipe=2,data=2", "D=pipe;B=data")}
# Limits on the number of microbatches: t5's batch is too small for two devices and two microbatches.
CUTS = {"t5 D2B2": 1}
NPY_TYPES = {"F32": "<f4", "I64": "<i8"}


def read_safetensors(path):
    """{name: (type, shape, bytes)}"""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        content = file.read()
    return {name: (entry["dtype"], entry["shape"], content[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def write_npy(path, dtype, shape, content):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (NPY_TYPES[dtype], "".join("%d, " % size for size in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def shape_of(value):
    return [len(value)] + shape_of(value[0]) if isinstance(value, list) else []


class PipelineMpiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_json(self, arguments):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, "%s\n%s%s" % (" ".join(arguments), done.stdout, done.stderr))
        return json.loads(done.stdout)

    def inputs(self, model, tensors):
        """The recorded batch as options."""
        options = []
        for name, tensor in tensors.items():
            if name.startswith("in."):
                write_npy(self.path(name + ".npy"), *tensor)
                options += ["--input", "%s=%s" % (name[3:], self.path(name + ".npy"))]
        with open(DATA + model + "/targets.json", encoding="utf-8") as file:
            targets = json.load(file)["targets"]
        write_npy(self.path("targets.npy"), "I64", shape_of(targets), array.array("q", flat(targets)).tobytes())
        return options + ["--input", "targets=" + self.path("targets.npy")]

    def compare(self, model, plan):
        dims, record = MODELS[model]
        mesh, shard = PLANS[plan]
        tensors = read_safetensors(DATA + model + "/io.safetensors")
        recorded = struct.unpack("<%df" % tensors[record][1][0], tensors[record][2])
        artifact = self.path("m.partita")
        self.run_json([COMPILER, "compile", DATA + model + "/model_train.onnx", "--dim", dims, "--train", "adamw", "--mesh", mesh, "--shard",
                       shard, "--microbatches", str(CUTS.get(model + " " + plan, 2)), "-o", artifact, "--json"])
        train = [RUNNER, "train", artifact, *self.inputs(model, tensors), "--lr", "1e-3", "--steps", str(len(recorded)), "--json", "--quiet"]
        threads = self.run_json(train)["losses"]
        devices = 1
        for axis in mesh.split(","):
            devices *= int(axis.split("=")[1])
        processes = self.run_json(["bash", "-c", 'source "$0"; "${mpi[@]}" -np "$1" "${@:2}"', ENVIRONMENT, str(devices), *train])["losses"]
        self.assertEqual(threads, processes)
        self.assertEqual(len(threads), len(recorded))
        for found, expected in zip(threads, recorded):
            self.assertLess(abs(found - expected), 1e-4 * abs(expected), (threads, recorded))

    def test_processes_equal_threads_and_pytorch(self):
        for model in MODELS:
            for plan in PLANS:
                with self.subTest(model=model, plan=plan):
                    self.compare(model, plan)


if __name__ == "__main__":
    unittest.main()
