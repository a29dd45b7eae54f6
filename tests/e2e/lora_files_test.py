"""Trained adapters as PEFT folders, and merged into their model: each way gives the outputs that training left."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
DATA = "tests/data/lora-tiny"
# Alpha of the adapters in DATA, and other options of `lora save`.
MODELS = {"llama": ("6",), "gpt2": ("4", "--rslora")}


class LoraFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(200) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def partita(self, *arguments, fails=False):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode != 0, fails, done.stdout + done.stderr)
        return done.stderr if fails else done.stdout

    def outputs(self, model, *options):
        """The bytes of the logits."""
        self.partita("compile", model, "--dim", "batch=2,seq=8", "-o", self.path("m.partita"), *options)
        run = subprocess.run([PARTITA_RUN, self.path("m.partita"), "--input", "input_ids=random:0:60", "--output-dir", self.path("out")],
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        (name,) = os.listdir(self.path("out"))
        with open(self.path("out/" + name), "rb") as file:
            data = file.read()
        os.remove(self.path("out/" + name))
        return memoryview(data[128:]).cast("f").tolist()

    def assert_close(self, a, b):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertAlmostEqual(x, y, delta=1e-5 * max(1, abs(y)))

    def test_save_and_merge(self):
        for name, alpha in MODELS.items():
            with self.subTest(model=name):
                model, adapter = f"{DATA}/{name}", f"{DATA}/{name}/adapter"
                before = self.outputs(model, "--lora", adapter)
                self.partita("compile", model, "--dim", "batch=2,seq=8", "--lora", adapter, "--train", "adamw", "-o", self.path("t.partita"))
                run = subprocess.run([PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", "3", "--lr",
                                      "0.05", "--checkpoint-dir", self.path(name), "--json"], capture_output=True, text=True, timeout=300)
                self.assertEqual(run.returncode, 0, run.stderr)
                checkpoint = self.path(name + "/step-00000003")
                after = self.outputs(model, "--lora", adapter, "--weights", checkpoint)
                self.assertGreater(max(abs(x - y) for x, y in zip(before, after)), 0.01)

                saved, merged = self.path(name + "-saved"), self.path(name + "-merged")
                facts = json.loads(self.partita("lora", "save", checkpoint, "--alpha", *alpha, "-o", saved, "--json"))
                self.assertEqual(facts["modules"], 6 if name == "llama" else 2)
                self.assertEqual(self.outputs(model, "--lora", saved), after)
                self.partita("lora", "merge", model, "--adapter", saved, "-o", merged)
                self.assert_close(self.outputs(merged), after)

    def test_square_weights_that_are_stored_in_by_out(self):
        model = f"{DATA}/gpt2"
        self.partita("compile", model, "--dim", "batch=2,seq=8", "--lora", "rank=2; targets=attn.c_proj", "--train", "adamw", "-o",
                     self.path("t.partita"))
        run = subprocess.run([PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", "3", "--lr", "0.05",
                              "--checkpoint-dir", self.path("run"), "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.partita("lora", "save", self.path("run/step-00000003"), "--alpha", "2", "-o", self.path("saved"))
        self.partita("lora", "merge", model, "--adapter", self.path("saved"), "-o", self.path("merged"))
        self.assert_close(self.outputs(self.path("merged")), self.outputs(model, "--lora", self.path("saved")))

    def test_refusals(self):
        model, adapter = f"{DATA}/llama", f"{DATA}/llama/adapter"
        for expected, arguments in (
                ("which exists", ("merge", model, "--adapter", adapter, "-o", self.folder)),
                ("expected a weight for every adapter", ("merge", f"{DATA}/gpt2", "--adapter", adapter, "-o", self.path("x"))),
                ("--adapter: expected a PEFT folder", ("merge", model, "--adapter", "rank=2; targets=q_proj", "-o", self.path("x"))),
                ("found no tensor whose name ends", ("save", model, "--alpha", "1", "-o", self.path("x"))),
                ("expected a folder with model*.safetensors", ("save", self.folder, "--alpha", "1", "-o", self.path("x"))),
        ):
            self.assertIn(expected, self.partita("lora", *arguments, fails=True))
            self.assertFalse(os.path.exists(self.path("x")))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
