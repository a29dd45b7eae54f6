"""1-bit Adam resumes from a checkpoint of AdamW, 1-bit LAMB from a checkpoint of its warm-up.

Their checkpoints contain the compression errors.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER = sys.argv[1:3]
del sys.argv[1:3]

MODEL = """
func.func @main(%x: tensor<8x24xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<24x20xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"normal", 1.0 : f64, 3>},
                %b: tensor<20xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"normal", 1.0 : f64, 4>})
    -> (tensor<8x20xf32> {nn.name = "y"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<8x24xf32>, tensor<24x20xf32> -> tensor<8x20xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<20xf32> -> tensor<8x20xf32>
  %y = arith.addf %0, %1 : tensor<8x20xf32>
  return %y : tensor<8x20xf32>
}
"""


def write_npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(values), *values))


def tensors(folder):
    """Bytes of each tensor of a checkpoint."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        size = struct.unpack("<Q", data[:8])[0]
        for tensor, entry in json.loads(data[8:8 + size]).items():
            if tensor != "__metadata__":
                begin, end = entry["data_offsets"]
                found[tensor] = data[8 + size + begin:8 + size + end]
    return found


class OneBitResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(cls.path("model.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL)
        # Many batches, so that compression errors differ from step to step.
        write_npy(cls.path("x.npy"), (40, 24), [((i * i * 7 + 3 * i) % 23) / 11 - 1 for i in range(960)])
        write_npy(cls.path("t.npy"), (40, 20), [((i * 5) % 17) / 8 - 1 for i in range(800)])
        for name, devices, options in (("warm", 2, ["--train", "adamw"]),
                                       ("bits2", 2, ["--train", "1bit-adam", "--onebit-warmup", "3"]),
                                       ("bits4", 4, ["--train", "1bit-adam", "--onebit-warmup", "3"]),
                                       ("warm_lamb", 2, ["--train", "1bit-lamb"]),
                                       ("bits2_lamb", 2, ["--train", "1bit-lamb", "--onebit-warmup", "3"])):
            subprocess.run([COMPILER, "compile", cls.path("model.mlir"), "--loss", "mse", "--name", "x:0=B", "--mesh",
                            "d=%d" % devices, "--shard", "B=d", "-o", cls.path(name), *options], check=True, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def train(self, model, checkpoints, steps):
        run = subprocess.run([RUNNER, "train", self.path(model), "--data",
                              "x=%s,targets=%s" % (self.path("x.npy"), self.path("t.npy")), "--lr", "0.01", "--steps",
                              str(steps), "--resume", "--checkpoint-dir", self.path(checkpoints)],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def test_without_a_warm_up_nothing_is_learned(self):
        run = subprocess.run([RUNNER, "train", self.path("bits2"), "--input", "x=ones", "--input", "targets=ones", "--steps", "1"],
                             capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("expected a checkpoint of the 1-bit optimizer's warm-up to resume from, found none", run.stderr)

    def saved(self, checkpoints, step):
        return tensors(os.path.join(self.path(checkpoints), "step-%08d" % step))

    def test_goes_on_bit_for_bit(self):
        self.train("warm", "whole", 3)
        warm = self.saved("whole", 3)
        self.assertIn("4 states of 1-bit exchanges are not in it and begin at zero", self.train("bits2", "whole", 9))
        self.train("warm", "parts", 3)
        for step in (5, 6, 9):
            said = self.train("bits2", "parts", step)
            self.assertEqual("begin at zero" in said, step == 5, said)
        whole, parts = self.saved("whole", 9), self.saved("parts", 9)
        self.assertEqual(whole, parts)
        self.assertEqual(whole["w/exp_avg_sq"], warm["w/exp_avg_sq"])
        for changed in ("w", "w/exp_avg", "b/exp_avg"):
            self.assertNotEqual(whole[changed], warm[changed])
        self.assertEqual(len(whole["w/worker_error"]), 2 * 512 * 4)
        self.assertNotEqual(whole["w/worker_error"].count(0), len(whole["w/worker_error"]))

    def test_lamb_goes_on_bit_for_bit(self):
        self.train("warm_lamb", "whole_lamb", 3)
        warm = self.saved("whole_lamb", 3)
        # For w and b: both errors, the ratio's factor and the variance that determines it.
        self.assertIn("8 states of 1-bit exchanges are not in it and begin at zero", self.train("bits2_lamb", "whole_lamb", 9))
        self.train("warm_lamb", "parts_lamb", 3)
        for step in (5, 6, 9):
            said = self.train("bits2_lamb", "parts_lamb", step)
            self.assertEqual("begin at zero" in said, step == 5, said)
        whole, parts = self.saved("whole_lamb", 9), self.saved("parts_lamb", 9)
        self.assertEqual(whole, parts)
        for kept in ("w/exp_avg_sq", "w/ratio", "b/ratio"):
            self.assertEqual(whole[kept], warm[kept])
        for changed in ("w", "w/exp_avg", "b/exp_avg"):
            self.assertNotEqual(whole[changed], warm[changed])
        for new in ("w/worker_error", "w/server_error", "w/fresh_exp_avg_sq", "w/ratio_factor"):
            self.assertNotIn(new, warm)
            self.assertNotEqual(whole[new].count(0), len(whole[new]))

    def test_refusals(self):
        common = [self.path("model.mlir"), "--loss", "mse", "--name", "x:0=B", "--mesh", "d=2", "--shard", "B=d", "--train",
                  "1bit-adam", "--onebit-warmup", "3"]
        for options, said in ((["compile", *common, "--zero", "1", "-o", self.path("no")], "expected no ZeRO"),
                              (["compile", *common, "--precision", "f16", "-o", self.path("no")], "f32 or bf16"),
                              (["verify", *common], "any number of devices, found 1bit-adam")):
            run = subprocess.run([COMPILER, *options], capture_output=True, text=True, timeout=120)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(said, run.stderr)

    def test_other_devices_begin_without_errors(self):
        self.train("warm", "moved", 3)
        self.train("bits2", "moved", 5)
        self.assertIn("4 states of 1-bit exchanges are not in it and begin at zero", self.train("bits4", "moved", 7))
        self.assertIn("going on from", self.train("warm", "moved", 8))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
