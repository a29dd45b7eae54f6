"""--debug-nan names the operation that produced the first NaN of a training step: on one device, on threads and on processes."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT = sys.argv[1:4]
del sys.argv[1:4]

# The logarithm of a sum that is negative for one row of the input.
MODEL = """
func.func @main(%x: tensor<6x4xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %v: tensor<4x3xf32> {nn.kind = "parameter", nn.name = "v", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<6x3xf32> {nn.name = "y"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32> loc("/first/MatMul")
  %1 = math.log %0 : tensor<6x4xf32> loc("/first/Log")
  %2 = nn.dot_general %1, %v contract = [1] x [0] : tensor<6x4xf32>, tensor<4x3xf32> -> tensor<6x3xf32> loc("/second/MatMul")
  return %2 : tensor<6x3xf32>
}
"""
MESHES = {"one": [], "two": ["--mesh", "d=2", "--shard", "B=d"], "four": ["--mesh", "d=4", "--shard", "B=d"],
          "columns": ["--mesh", "t=2", "--shard", "M=t"]}


def write_npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(values), *values))


class DebugNanTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.path("model.mlir")
        with open(cls.model, "w", encoding="utf-8") as file:
            file.write(MODEL)
        good = [1 + i % 3 for i in range(24)]
        write_npy(cls.path("good.npy"), (6, 4), good)
        write_npy(cls.path("bad.npy"), (6, 4), good[:20] + [-1, -2, -3, -4])
        write_npy(cls.path("nan.npy"), (6, 4), good[:23] + [float("nan")])
        write_npy(cls.path("t.npy"), (6, 3), [0] * 18)
        for name, options in MESHES.items():
            subprocess.run([COMPILER, "compile", cls.model, "--train", "sgd", "--loss", "mse", "--weight-decay", "0",
                            "--name", "x:0=B", "--name", "w:1=M"] + options + ["-o", cls.path(name)], check=True, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def train(self, mesh, x, *options, launcher=()):
        run = subprocess.run([*launcher, RUNNER, "train", self.path(mesh), "--input", "x=" + self.path(x), "--input",
                              "targets=" + self.path("t.npy"), "--steps", "2", "--lr", "0.001", *options],
                             capture_output=True, text=True, timeout=120)
        return run.returncode, run.stderr

    def test_names_the_operation(self):
        for mesh in MESHES:
            with self.subTest(mesh):
                code, error = self.train(mesh, "bad.npy", "--debug-nan")
                self.assertEqual(code, 1, error)
                self.assertRegex(error, r"step 1: .*'/first/Log'.* made NaN, first in element \[\d, \d\] of f32\[\d,\d\]")
        # The second device has rows 4 to 6.
        self.assertRegex(self.train("two", "bad.npy", "--debug-nan")[1], r"step 1: rank 1 \(d 1\): .*element \[2, 0\] of f32\[3,4\]")

    def test_processes(self):
        launcher = ["bash", "-c", 'source "$0"; "${mpi[@]}" -np 2 "$@"', ENVIRONMENT]
        code, error = self.train("two", "bad.npy", "--debug-nan", launcher=launcher)
        self.assertNotEqual(code, 0)
        self.assertRegex(error, r"step 1: .*rank 1 \(d 1\): '/first/Log'.* made NaN, first in element \[2, 0\] of f32\[3,4\]")
        self.assertEqual(error.count("made NaN"), 1, error)

    def test_names_the_input(self):
        code, error = self.train("two", "nan.npy", "--debug-nan")
        self.assertEqual(code, 1, error)
        self.assertIn("input 'x' holds NaN before the step", error)

    def test_names_the_frozen_parameter(self):
        source = self.path("frozen.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write(MODEL.replace('%v: tensor<4x3xf32> {nn.kind = "parameter", nn.name = "v", nn.source = '
                                     '#nn.init<"ones", 1.0 : f64, 0>',
                                     '%v: tensor<4x3xf32> {nn.kind = "parameter", nn.name = "v", nn.source = '
                                     '#nn.file<"v.bin", 0, 48, f32>'))
        with open(self.path("v.bin"), "wb") as file:
            file.write(struct.pack("<12f", *[1] * 7, float("nan"), *[1] * 4))
        for name, options in (("frozen_one", []), ("frozen_two", MESHES["two"])):
            subprocess.run([COMPILER, "compile", source, "--train", "sgd", "--trained", "w", "--loss", "mse", "--name",
                            "x:0=B", "--name", "w:1=M"] + options + ["-o", self.path(name)], check=True, timeout=120)
            code, error = self.train(name, "good.npy", "--debug-nan")
            self.assertEqual(code, 1, error)
            self.assertIn("parameter 'v' holds NaN before the step", error)

    def test_infinite_numbers_that_become_nan(self):
        code, error = self.train("columns", "good.npy", "--debug-nan", "--lr", "1e30")
        self.assertEqual(code, 1, error)
        self.assertRegex(error, r"step 2: .* made (NaN|an infinite number), first in element ")

    def test_finite_runs_go_on(self):
        for mesh in MESHES:
            with self.subTest(mesh):
                traced = self.train(mesh, "good.npy", "--debug-nan", "--quiet")
                self.assertEqual(traced[0], 0, traced[1])

    def test_without_it_the_loss_is_refused(self):
        code, error = self.train("two", "bad.npy")
        self.assertEqual(code, 1, error)
        self.assertRegex(error, r"step 1: the loss is -?nan")
        self.assertIn("--debug-nan", error)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
