"""Checkpoints of models with experts have the tensors of Hugging Face's files, and load under every plan and as a folder."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
MODEL = "tests/data/experts-tiny/mixtral"


def shapes(folder, prefix="model"):
    """The shapes of all tensors in the files that begin with `prefix`."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not (name.startswith(prefix) and name.endswith(".safetensors")):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        found.update({tensor: entry["shape"] for tensor, entry in header.items() if tensor != "__metadata__"})
    return found


class ExpertsCheckpointTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # One batch, so that all steps see the same tokens.
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(41) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, model, *options):
        compiled = subprocess.run([PARTITA, "compile", model, "--dim", "batch=4,seq=10", "--train", "adamw", "-o",
                                   self.path("m.partita"), *options], capture_output=True, text=True, timeout=300)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def losses(self, steps, *options):
        run = subprocess.run([PARTITA_RUN, "train", self.path("m.partita"), "--data", self.path("tokens.bin"), "--no-shuffle", "--steps",
                              str(steps), "--lr", "0.01", "--json", *options], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["losses"]

    def assert_close(self, a, b):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertAlmostEqual(x, y, delta=1e-5 * abs(y))

    def test_checkpoints(self):
        self.compile(MODEL)
        expected = self.losses(4)
        checkpoint = self.path("ckpt/step-00000002")
        self.assert_close(self.losses(2, "--checkpoint-dir", self.path("ckpt")), expected[:2])
        self.assertEqual(shapes(checkpoint), shapes(MODEL))
        states = shapes(checkpoint, "optimizer")
        self.assertIn("model.layers.1.block_sparse_moe.experts.3.w2.weight/exp_avg", states)
        self.assertEqual(len(states), 2 * len(shapes(MODEL)))

        # The same run goes on under another plan, to the same tensors.
        self.compile(MODEL, "--mesh", "t=2", "--shard", "M=t")
        self.assert_close(self.losses(4, "--checkpoint-dir", self.path("ckpt"), "--resume"), expected[2:])
        self.assertEqual(shapes(self.path("ckpt/step-00000004")), shapes(MODEL))

        # A checkpoint is a Hugging Face folder.
        self.compile(checkpoint)
        self.assert_close(self.losses(1), expected[2:3])

    def test_embedded_weights(self):
        self.compile(MODEL)
        expected = self.losses(2)
        self.compile(MODEL, "--embed-weights")
        self.assertEqual(self.losses(2), expected)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
