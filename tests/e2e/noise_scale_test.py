"""The gradient noise scale of a linear model: each step's numbers against plain loops, and the estimate against the closed form."""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
INPUTS, OUTPUTS, BATCH, STEPS, SIGMA = 4, 3, 8, 1000, 2.0
# y = x w, with all weights 1.
MODEL = """
func.func @main(%%x: tensor<%dx4xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "E"]},
                %%w: tensor<4x3xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<%dx3xf32> {nn.name = "y"}) {
  %%y = nn.dot_general %%x, %%w contract = [1] x [0] : tensor<%dx4xf32>, tensor<4x3xf32> -> tensor<%dx3xf32>
  return %%y : tensor<%dx3xf32>
}
"""


def array(rows):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + b"".join(struct.pack("<%df" % len(row), *row) for row in rows))


def gradient(xs, ts):
    """Of the mean of (x w - t)^2, with w = 1."""
    total = [[0.0] * OUTPUTS for _ in range(INPUTS)]
    for x, t in zip(xs, ts):
        for j in range(OUTPUTS):
            rest = 2 * (sum(x) - t[j]) / (OUTPUTS * len(xs))
            for i in range(INPUTS):
                total[i][j] += rest * x[i]
    return total


def square(matrix):
    return sum(value * value for row in matrix for value in row)


class NoiseScaleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        draw = random.Random(5)
        # w* = 1 - difference, so the true gradient is (2 / OUTPUTS) difference.
        cls.difference = [[0.5 + 0.25 * ((i + j) % 3) for j in range(OUTPUTS)] for i in range(INPUTS)]
        round32 = lambda value: struct.unpack("<f", struct.pack("<f", value))[0]
        cls.x = [[round32(draw.gauss(0, 1)) for _ in range(INPUTS)] for _ in range(BATCH * STEPS)]
        cls.t = [[round32(sum(x[i] * (1 - cls.difference[i][j]) for i in range(INPUTS)) + SIGMA * draw.gauss(0, 1))
                  for j in range(OUTPUTS)] for x in cls.x]
        for name, rows in (("x", cls.x), ("t", cls.t)):
            with open(cls.path(name + ".npy"), "wb") as file:
                file.write(array(rows))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def compile(self, microbatches, *more, train="sgd", code=0):
        with open(self.path("model.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL % ((BATCH,) * 5))
        run = subprocess.run([PARTITA, "compile", self.path("model.mlir"), "--train", train, "--loss", "mse", "--noise-scale",
                              "--microbatches", str(microbatches), "-o", self.path("m"), *more], capture_output=True, text=True,
                             timeout=300)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def train(self, steps):
        run = subprocess.run([PARTITA_RUN, "train", self.path("m"), "--data", "x=%s,targets=%s" % (self.path("x.npy"), self.path("t.npy")),
                              "--no-shuffle", "--steps", str(steps), "--lr", "1e-30", "--log", self.path("log.jsonl"), "--json"],
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("log.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        os.remove(self.path("log.jsonl"))
        return json.loads(run.stdout), lines

    def check_steps(self, microbatches, lines):
        rows = BATCH // microbatches
        for step, line in enumerate(lines):
            xs, ts = self.x[step * BATCH:][:BATCH], self.t[step * BATCH:][:BATCH]
            big = square(gradient(xs, ts))
            small = sum(square(gradient(xs[i:i + rows], ts[i:i + rows])) for i in range(0, BATCH, rows)) / microbatches
            noise, signal = (small - big) / (microbatches - 1), (microbatches * big - small) / (microbatches - 1)
            self.assertAlmostEqual(line["gradient_noise"], noise, delta=1e-4 * (small + big))
            self.assertAlmostEqual(line["gradient_signal"], signal, delta=1e-4 * (small + big))

    def test_closed_form(self):
        squares = square(self.difference)
        second = 4 / OUTPUTS**2 * ((INPUTS + 2) * squares + OUTPUTS * INPUTS * SIGMA**2)
        first = 4 / OUTPUTS**2 * squares
        expected = (second - first) / first
        for microbatches in (2, 4):
            with self.subTest(microbatches=microbatches):
                self.compile(microbatches)
                report, lines = self.train(STEPS)
                self.check_steps(microbatches, lines)
                # Averages over all steps, and the run's moving averages of some 200 steps.
                noise = sum(line["gradient_noise"] for line in lines) * BATCH / STEPS
                signal = sum(line["gradient_signal"] for line in lines) / STEPS
                print("noise %.3f of %.3f, signal %.3f of %.3f, scale %.2f of %.2f"
                      % (noise, second - first, signal, first, report["noise_scale_examples"], expected))
                self.assertAlmostEqual(noise / (second - first), 1, delta=0.05)
                self.assertAlmostEqual(signal / first, 1, delta=0.1)
                self.assertAlmostEqual(report["noise_scale_examples"] / expected, 1, delta=0.3)

    def test_divided_over_devices(self):
        for mesh in ((), ("--zero", "1"), ("--zero", "2")):
            with self.subTest(mesh=mesh):
                self.compile(2, "--mesh", "d=2", "--shard", "B=d", *mesh, train="adamw")
                self.check_steps(2, self.train(5)[1])

    def test_refusals(self):
        self.assertIn("--noise-scale: expected at least 2 microbatches", self.compile(1, code=1))
        self.assertIn("--noise-scale: expected f32 or bf16, found f16", self.compile(2, "--precision", "f16", code=1))
        self.assertIn("--noise-scale: expected no pipeline", self.compile(2, "--mesh", "p=2", "--shard", "D=p", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
