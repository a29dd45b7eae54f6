"""Collectives that run beside other work: which are started where, and that the step is the same to the bit without."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
BUCKET = 25 * 2**20


class OverlapTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, width, layers, *options):
        """The rows of `inspect` on what is overlapped, of a GPT-2 on two devices."""
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 16, "n_embd": width,
                  "n_layer": layers, "n_head": 4}
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        subprocess.run([PARTITA, "compile", self.folder, "--dim", "batch=4,seq=8", "--train", "adamw", "-o", self.path("m.partita"), *options],
                       check=True, stdout=subprocess.DEVNULL)
        inspected = subprocess.run([PARTITA, "inspect", self.path("m.partita"), "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(inspected.stdout)["overlapped"]

    def train(self, *options):
        """Losses of three steps, and the parameters and states after them."""
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([PARTITA_RUN, "train", self.path("m.partita"), "--input", "input_ids=arange", "--input", "targets=ones",
                                  "--lr", "0.01", "--steps", "3", "--quiet", "--json", "--checkpoint-dir", folder,
                                  "--checkpoint-every", "3", *options], check=True, stdout=subprocess.PIPE)
            files = {}
            for at, _, names in os.walk(folder):
                for name in names:
                    if name.endswith(".safetensors"):
                        with open(os.path.join(at, name), "rb") as file:
                            files[name] = hashlib.sha256(file.read()).hexdigest()
            self.assertTrue(files)
            return json.loads(run.stdout)["losses"], files

    def assert_same_without(self, width, layers, *plan):
        rows = self.compile(width, layers, *plan)
        overlapped = self.train()
        self.assertEqual(self.compile(width, layers, *plan, "--no-overlap"), [])
        self.assertEqual(self.train(), overlapped)
        return rows

    def test_a_bucket_is_reduced_beside_the_last_backward(self):
        rows = self.assert_same_without(512, 4, "--mesh", "d=2", "--shard", "B=d", "--microbatches", "2")
        buckets = [row for row in rows if row["collective"] == "all_reduce" and row["bytes"] >= BUCKET]
        self.assertEqual(len(buckets), 1)
        # Of the last microbatch, whose calls come last, one layer is left.
        self.assertEqual(buckets[0]["beside"], "block_backward, segment_backward")

    def test_parameters_are_gathered_ahead(self):
        plan = ["--mesh", "d=2", "--shard", "B=d", "--zero", "3"]
        rows = self.assert_same_without(32, 3, *plan)
        beside = {row["beside"] for row in rows if row["collective"] == "all_gather"}
        for call in ("segment_forward", "block_forward", "segment_0_forward", "block_backward"):
            self.assertIn(call, beside)
        self.assertNotIn("2 x block_forward", beside)

    def test_the_plan_says_how_far_ahead(self):
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2}\nshard: [{B: d}]\nzero: 3\ngather: {prefetch: 2}\n")
        beside = {row["beside"] for row in self.compile(32, 3, "--plan", self.path("plan.yaml"))}
        self.assertIn("2 x block_forward", beside)
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2}\nshard: [{B: d}]\nzero: 3\ngather: {prefetch: 0}\n")
        rows = self.compile(32, 3, "--plan", self.path("plan.yaml"))
        self.assertFalse([row for row in rows if row["collective"] == "all_gather" and "forward" in row["beside"]])

    def test_explain_says_what_is_overlapped(self):
        self.compile(32, 3, "--mesh", "d=2", "--shard", "B=d", "--zero", "3")
        explained = subprocess.run([PARTITA, "explain", self.folder, "--dim", "batch=4,seq=8", "--train", "adamw", "--mesh", "d=2", "--shard",
                                    "B=d", "--zero", "3"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(explained, "beside other work: all_gather of [^\n]*\n  while block_forward\n")

    def test_in_pipelines_too(self):
        self.assert_same_without(32, 4, "--mesh", "pipe=2,d=2", "--shard", "D=pipe;B=d", "--zero", "3", "--microbatches", "2")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
