"""The golden models under every division of divisions.h, rings and Ulysses among them, and models with experts under theirs, give equal
bytes on threads of one process and on processes of Open MPI."""

import os
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT, LIST = sys.argv[1:5]
del sys.argv[1:5]
DATA = "tests/data/onnx-tiny/"


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(arguments), done.stdout, done.stderr))
    return done.stdout


def outputs(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


class DividedMpiTest(unittest.TestCase):
    def compare(self, model, io, dims, mesh, shard, attention, folder):
        artifact = os.path.join(folder, "model.partita")
        run([COMPILER, "compile", model, "--dim", dims, "--mesh", mesh, "--shard", shard,
             *(["--attention", attention] if attention else []), "-o", artifact])
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
        cases = [line.split("\t") for line in run([LIST]).splitlines()]
        self.assertEqual({case[0] for case in cases}, set(DIMS))
        for model, name, mesh, shard, attention in cases:
            with self.subTest(model=model, division=name), tempfile.TemporaryDirectory() as folder:
                self.compare(DATA + model + "/model_eval.onnx", DATA + model + "/io.safetensors", DIMS[model], mesh, shard, attention,
                             folder)
        print("%d cases" % len(cases))

    def test_experts(self):
        for model, dims in EXPERT_DIMS.items():
            for mesh, shard in EXPERT_DIVISIONS:
                with self.subTest(model=model, shard=shard), tempfile.TemporaryDirectory() as folder:
                    self.compare(EXPERTS + model, EXPERTS + model + "/io.safetensors", dims, mesh, shard, "", folder)
        print("%d cases with experts" % (len(EXPERT_DIMS) * len(EXPERT_DIVISIONS)))


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

EXPERTS = "tests/data/experts-tiny/"
EXPERT_DIMS = {
    "mixtral": "batch=4,seq=10",
    "qwen3_moe": "batch=4,seq=10",
    "deepseek_v3": "batch=4,seq=10",
    "switch_transformers": "batch=4,seq=12,decoder_seq=9",
}
EXPERT_DIVISIONS = (
    ("x=2", "X=x"),
    ("x=4", "X=x"),
    ("x=2,t=2", "X=x;M=t"),
    # Experts over the axis of the batch.
    ("d=2", "B=d;X=d"),
    ("d=2,s=2", "B=d;X=d;L=s"),
)

if __name__ == "__main__":
    unittest.main()
