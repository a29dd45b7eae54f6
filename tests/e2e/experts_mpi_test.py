"""Models with experts train with rows that travel to their experts: on threads as undivided, in processes of Open MPI bit for bit as on
threads, and a step that exceeds the bound on rows ends with the layer, the device, the step and the factor needed."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT = sys.argv[1:4]
del sys.argv[1:4]
DATA = "tests/data/experts-tiny/"
# Name, mesh, shard, other options. B = 4: over 3 devices, the last has no rows.
PLANS = [
    ("X2", "data=2", "B=data;X=data", ["--experts", "rows"]),
    ("X3Bounded", "data=3", "B=data;X=data", ["--experts", "rows=3"]),
    ("X4Zero1", "data=4", "B=data;X=data", ["--experts", "rows", "--zero", "1"]),
    ("X2M2", "data=2,tensor=2", "B=data;X=data;M=tensor", ["--experts", "rows", "--microbatches", "2"]),
]


class ExpertsMpiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # One batch, so that all steps see the same tokens.
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(41) for b in (i * i % 61, 0)))
        self.train = [RUNNER, "train", self.path("m.partita"), "--data", self.path("tokens.bin"), "--no-shuffle", "--steps", "3", "--lr",
                      "0.01", "--json", "--quiet"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, model, *options):
        done = subprocess.run([COMPILER, "compile", DATA + model, "--dim", "batch=4,seq=10", "--train", "adamw", "-o",
                               self.path("m.partita"), *options], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def losses(self, command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["losses"]

    @staticmethod
    def under_mpi(processes, command):
        return ["bash", "-c", 'source "$0"; "${mpi[@]}" -np "$1" "${@:2}"', ENVIRONMENT, str(processes), *command]

    def test_processes_equal_threads(self):
        for model in ("mixtral", "qwen3_moe", "deepseek_v3"):
            self.compile(model)
            whole = self.losses(self.train)
            for name, mesh, shard, options in PLANS:
                with self.subTest(model=model, plan=name):
                    self.compile(model, "--mesh", mesh, "--shard", shard, *options)
                    threads = self.losses(self.train)
                    for found, expected in zip(threads, whole, strict=True):
                        self.assertAlmostEqual(found, expected, delta=1e-5 * abs(expected))
                    devices = 1
                    for axis in mesh.split(","):
                        devices *= int(axis.split("=")[1])
                    self.assertEqual(self.losses(self.under_mpi(devices, self.train)), threads)

    def test_a_step_beyond_the_bound_ends_the_run(self):
        self.compile("mixtral", "--mesh", "data=2", "--shard", "B=data;X=data", "--experts", "rows=1")
        for command in (self.train, self.under_mpi(2, self.train)):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"rank \d")
            self.assertRegex(done.stderr, r"step 1: .*' of layer 'model\.layers\.\d[^']*' failed: expected at most 40 rows for the "
                             r"experts of device \d of the group, found \d+: 1\.\d+ times the even share of 40; give the plan 'experts: "
                             r"\{rows: 1\.\d+\}'")
        # The factor that the message names is enough for its operation.
        factors = [1.0]
        while done.returncode != 0:
            factors.append(float(re.search(r"--experts rows=([0-9.]+)", done.stderr).group(1)))
            self.assertGreater(factors[-1], factors[-2])
            self.assertLessEqual(factors[-1], 2)
            self.compile("mixtral", "--mesh", "data=2", "--shard", "B=data;X=data", "--experts", "rows=%s" % factors[-1])
            done = subprocess.run(self.train, capture_output=True, text=True, timeout=300, check=False)


if __name__ == "__main__":
    unittest.main()
