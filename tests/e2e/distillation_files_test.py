"""A distilled student on disk: its checkpoints hold nothing of the teacher, and training goes on from them."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
DATA = "tests/data/distillation-tiny"
SIZES = ("--dim", "batch=2,seq=8")


def tensors(path):
    """The names in a safetensors file."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return [name for name in json.loads(file.read(size)) if name != "__metadata__"]


class DistillationFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(200) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *arguments, code=0):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def train(self, steps, folder, *options):
        self.run_command(PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", str(steps), "--lr", "0.01",
                         "--checkpoint-dir", self.path(folder), "--log", self.path(folder + ".jsonl"), "--json", *options)
        with open(self.path(folder + ".jsonl"), encoding="utf-8") as file:
            return [json.loads(line)["loss"] for line in file]

    def test_checkpoints(self):
        self.run_command(PARTITA, "compile", f"{DATA}/student", *SIZES, "--train", "adamw", "--teacher", f"{DATA}/teacher", "--distill",
                         "kl=1; cross_entropy=0.5", "-o", self.path("t.partita"))
        whole = self.train(6, "whole")
        self.assertEqual(self.train(3, "cut"), whole[:3])
        self.assertEqual(self.train(6, "cut", "--resume"), whole)
        checkpoint = self.path("cut/step-00000006")
        names = [name for file in sorted(os.listdir(checkpoint)) if file.endswith(".safetensors") for name in tensors(os.path.join(checkpoint, file))]
        self.assertIn("transformer.h.0.mlp.c_fc.weight", names)
        self.assertIn("transformer.h.0.mlp.c_fc.weight/exp_avg", names)
        self.assertEqual([name for name in names if name.startswith("teacher.")], [])
        # The checkpoint is a folder of the student.
        with open(os.path.join(checkpoint, "config.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["n_layer"], 1)
        self.run_command(PARTITA, "compile", checkpoint, *SIZES, "-o", self.path("student.partita"))

    def test_plans_name_the_teacher(self):
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2, t: 2}\nshard:\n  - {B: d}\n  - {at: \"teacher.*\", M: t, N: t}\n")
        told = json.loads(self.run_command(PARTITA, "verify", f"{DATA}/student", *SIZES, "--train", "adamw", "--teacher", f"{DATA}/teacher",
                                           "--plan", self.path("plan.yaml"), "--json"))
        self.assertTrue(told["equal"], told)
        self.assertTrue(told["imported_compared"], told)
        told = self.run_command(PARTITA, "explain", f"{DATA}/student", *SIZES, "--train", "adamw", "--teacher", f"{DATA}/teacher",
                                "--plan", self.path("plan.yaml"))
        self.assertIn("teacher.block.attn.c_proj", told)
        self.assertIn("without N: t at teacher.*", told)

    def test_refusals(self):
        for expected, arguments in (
                ("expected --train with --teacher", ("--teacher", f"{DATA}/teacher")),
                ("expected --teacher MODEL with --distill", ("--train", "adamw", "--distill", "kl=1")),
                ("--distill: expected kl=X with a number X", ("--train", "adamw", "--teacher", f"{DATA}/teacher", "--distill", "kl=-1")),
        ):
            error = self.run_command(PARTITA, "compile", f"{DATA}/student", *SIZES, *arguments, "-o", self.path("x"), code=2)
            self.assertIn(expected, error)
        error = self.run_command(PARTITA, "compile", f"{DATA}/student", *SIZES, "--train", "adamw", "--teacher", self.path("none"), "-o",
                                 self.path("x"), code=1)
        self.assertIn("found no file or folder", error)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
