"""0/1 Adam resumes between two exchanges, bit for bit; refusals."""

import json
import os
import shutil
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
# Steps 11 to 16 exchange, 17 to 22 every second time, 23 to 28 after 26 and 28.
SCHEDULE = ["--steps", "30", "--variance-until", "10", "--variance-doubling", "4", "--local-doubling", "6"]


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


class ZeroOneResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(cls.path("model.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL)
        # Many batches, so that devices differ from each other and from step to step.
        write_npy(cls.path("x.npy"), (40, 24), [((i * i * 7 + 3 * i) % 23) / 11 - 1 for i in range(960)])
        write_npy(cls.path("t.npy"), (40, 20), [((i * 5) % 17) / 8 - 1 for i in range(800)])
        for name, devices, more in (("two", 2, []), ("four", 4, []), ("half", 2, ["--precision", "bf16"])):
            run = cls.compile(name, "--mesh", "d=%d" % devices, "--shard", "B=d", *more)
            assert run.returncode == 0, run.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def compile(cls, name, *options):
        return subprocess.run([COMPILER, "compile", cls.path("model.mlir"), "--loss", "mse", "--name", "x:0=B", "--train",
                               "0/1-adam", "-o", cls.path(name), *options], capture_output=True, text=True, timeout=120,
                              check=False)

    def train(self, model, checkpoints, *options):
        return subprocess.run([RUNNER, "train", self.path(model), "--data",
                               "x=%s,targets=%s" % (self.path("x.npy"), self.path("t.npy")), "--lr", "0.01", *options,
                               "--resume", "--checkpoint-dir", self.path(checkpoints)],
                              capture_output=True, text=True, timeout=120, check=False)

    def saved(self, checkpoints, step):
        return tensors(os.path.join(self.path(checkpoints), "step-%08d" % step))

    def resumes(self, model, step):
        whole, parts = model + "_whole", "%s_from_%d" % (model, step)
        if not os.path.exists(self.path(whole)):
            run = self.train(model, whole, *SCHEDULE, "--checkpoint-every", "1", "--keep", "40")
            self.assertEqual(run.returncode, 0, run.stderr)
        os.mkdir(self.path(parts))
        name = "step-%08d" % step
        shutil.copytree(os.path.join(self.path(whole), name), os.path.join(self.path(parts), name))
        run = self.train(model, parts, *SCHEDULE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("going on from", run.stderr)
        self.assertEqual(self.saved(whole, 30), self.saved(parts, 30))
        return self.saved(whole, step)

    def test_goes_on_bit_for_bit_between_exchanges(self):
        between = self.resumes("two", 23)
        # The devices' sums differ, and the parameters are those of the last exchange.
        sums = between["w/local_sum"]
        self.assertEqual(len(sums), 2 * 480 * 4)
        self.assertNotEqual(sums[:1920], sums[1920:])
        self.assertEqual(between["w"], self.saved("two_whole", 22)["w"])
        self.assertNotEqual(between["w"], self.saved("two_whole", 26)["w"])

    def test_goes_on_bit_for_bit_while_the_variance_changes(self):
        between = self.resumes("two", 6)
        self.assertEqual(set(between["w/local_sum"]), {0})

    def test_goes_on_bit_for_bit_in_bf16(self):
        self.assertIn("w/master", self.resumes("half", 24))

    def test_a_number_of_devices_is_for_a_whole_run(self):
        self.resumes("two", 12)
        run = self.train("four", "two_from_12", *SCHEDULE)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("local_exp_avg", run.stderr)

    def test_a_schedule_is_for_a_whole_run(self):
        self.resumes("two", 24)
        run = self.train("two", "two_from_24", "--steps", "40", "--variance-until", "40")
        self.assertEqual(run.returncode, 0, run.stderr)  # from step 30, an exchange
        shutil.rmtree(self.path("two_from_24/step-00000030"))
        shutil.rmtree(self.path("two_from_24/step-00000040"))
        run = self.train("two", "two_from_24", "--steps", "40", "--variance-until", "40")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("the checkpoint of step 24 was made", run.stderr)

    def test_programs_are_of_their_kinds(self):
        for a, b in (("variance", "local"), ("exchange", "local"), ("exchange", "variance")):
            folder = "swapped_%s_%s" % (a, b)
            shutil.copytree(self.path("two"), self.path(folder))
            for source, target in ((a, b), (b, a)):
                shutil.copy(self.path("two/%s.partita" % source), self.path("%s/%s.partita" % (folder, target)))
            run = self.train(folder, "no_checkpoints", "--steps", "12")
            self.assertEqual(run.returncode, 1, run.stderr)
            # Loading may find a state missing before kinds are compared.
            self.assertRegex(run.stderr, "to be that step of 0/1 Adam|compile both together")

    def test_memory_is_of_all_programs(self):
        mesh = ["--mesh", "d=2", "--shard", "B=d"]
        # Each program is smaller than this.
        run = self.compile("small", *mesh, "--memory", "25 KB")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("--memory, for the three steps of 0/1-adam together: expected at most 25", run.stderr)
        self.assertFalse(os.path.exists(self.path("small")))
        run = self.compile("small", *mesh, "--memory", "100 KB")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_learns(self):
        log = self.path("log.jsonl")
        run = self.train("four", "learns", *SCHEDULE, "--log", log)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(log, encoding="utf-8") as file:
            losses = [json.loads(line)["loss"] for line in file]
        self.assertEqual(len(losses), 30)
        self.assertLess(sum(losses[-5:]), 0.9 * sum(losses[:5]))

    def test_refusals(self):
        mesh = ["--mesh", "d=2", "--shard", "B=d"]
        for options, said in (([*mesh, "--zero", "1"], "expected no ZeRO"),
                              (["--mesh", "d=2", "--shard", "B=d;M=d"], "expected no axis of B for another dimension"),
                              ([*mesh, "--microbatches", "2", "--noise-scale"], "another optimizer than 0/1-adam"),
                              ([*mesh, "--precision", "f16"], "f32 or bf16"),
                              ([*mesh, "--clip-norm", "1"], "expected no --clip-norm")):
            run = self.compile("no", *options)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(said, run.stderr)
        run = self.train("two/exchange.partita", "no_checkpoints", "--steps", "1")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("found one of three kinds of steps of 0/1 Adam", run.stderr)
        run = subprocess.run([RUNNER, self.path("two")], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("the folder of the three kinds of steps of 0/1 Adam; train it with partita train", run.stderr)
        # The gradient of b is a product of sums over the batch.
        with open(self.path("whole.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL.replace("nn.broadcast %b", "nn.broadcast %q").replace("  %1 =", """\
  %s = nn.reduce sum %0 dims = [0] : tensor<8x20xf32> -> tensor<20xf32>
  %q = arith.mulf %s, %b : tensor<20xf32>
  %1 ="""))
        run = subprocess.run([COMPILER, "compile", self.path("whole.mlir"), "--loss", "mse", "--name", "x:0=B", "--train",
                              "0/1-adam", "-o", self.path("whole"), *mesh], capture_output=True, text=True, timeout=120,
                             check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("own gradient of 'b', a sum over d, the axes of B, found the same on all devices", run.stderr)
        self.assertFalse(os.path.exists(self.path("whole")))
        with open(self.path("files.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2}\nshard:\n  - {B: d}\noffload: {optimizer: nvme, path: states}\n")
        run = self.compile("no", "--plan", self.path("files.yaml"))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("expected the states of 0/1-adam in memory", run.stderr)
        run = self.train("two", "no_checkpoints", "--steps", "1", "--offload-dir", self.folder.name)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("--offload-dir: expected a model of one program", run.stderr)
        for command in (["inspect", self.path("two")], ["simulate", self.path("two"), "--cluster", "a100-80-sxm"]):
            run = subprocess.run([COMPILER, *command], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("exchange.partita or", run.stderr)
        run = subprocess.run([COMPILER, "verify", self.path("model.mlir"), "--loss", "mse", "--name", "x:0=B", "--train",
                              "0/1-adam", *mesh], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("any number of devices, found 0/1-adam", run.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
