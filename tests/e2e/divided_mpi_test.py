"""The golden models under every plan of divisions.h, on threads of one process and on processes of Open MPI: equal bytes."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT = sys.argv[1:4]
del sys.argv[1:4]
DATA = "tests/data/onnx-tiny/"


def divisions():
    """(name, mesh, shard) of all models, then those of models with images."""
    with open("tests/e2e/divisions.h", encoding="utf-8") as file:
        text = file.read()
    lists = text.split("kImageDivisions[]")
    return [re.findall(r'\{"(\w+)", "([\w=,]+)",\s*"([\w=,;]+)"\}', part) for part in lists]


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(arguments), done.stdout, done.stderr))


def outputs(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


class DividedMpiTest(unittest.TestCase):
    def compare(self, model, mesh, shard, folder):
        artifact = os.path.join(folder, "model.partita")
        io = DATA + model + "/io.safetensors"
        run([COMPILER, "compile", DATA + model + "/model_eval.onnx", "--dim", DIMS[model], "--mesh", mesh, "--shard", shard,
             "-o", artifact])
        devices = 1
        for axis in mesh.split(","):
            devices *= int(axis.split("=")[1])
        run([RUNNER, artifact, "--inputs", io, "--output-dir", folder + "/threads"])
        run(["bash", "-c", 'source "$0"; "${mpi[@]}" -np "$1" "${@:2}"', ENVIRONMENT, str(devices), RUNNER, artifact, "--inputs",
             io, "--output-dir", folder + "/processes"])
        threads = outputs(folder + "/threads")
        self.assertTrue(threads)
        self.assertEqual(threads, outputs(folder + "/processes"))

    def test_processes_equal_threads(self):
        general, images = divisions()
        self.assertEqual((len(general), len(images)), (16, 10), "divisions.h is no longer read as it is written")
        cases = [(model, division) for model in DIMS for division in general]
        cases += [(model, division) for model in ("coatnet_64", "coatnet_bias") for division in images]
        for model, (name, mesh, shard) in cases:
            with self.subTest(model=model, division=name), tempfile.TemporaryDirectory() as folder:
                self.compare(model, mesh, shard, folder)


# Sizes of the recorded inputs.
DIMS = {
    "bert_mlm": "batch=2,seq=12",
    "coatnet_64": "batch=8",
    "coatnet_bias": "batch=4",
    "gpt2": "batch=2,seq=12",
    "gpt2_4l": "batch=8,seq=12",
    "t5": "batch=2,seq=12,dec=7",
    "vit": "batch=4",
    "vit_3l": "batch=8",
}

if __name__ == "__main__":
    unittest.main()
