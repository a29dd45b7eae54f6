"""Collectives that overlap with other work: which ones start where, and that the step is bit-for-bit the same without overlap."""

import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
BUCKET = 25 * 2**20


def numbers_of(name):
    """Sizes in a collective's input, from text such as "all_gather f32[16,32] to ..."."""
    sizes = re.match(r"\w+ \w+\[([\d,]*)\]", name)[1]
    return math.prod(int(size) for size in sizes.split(",") if size)


class OverlapTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, width, layers, *options):
        """The rows of `inspect` for overlapped collectives, for a GPT-2 on two devices."""
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
        # Only one layer of the last microbatch is left, because its calls come last.
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

    def collectives(self):
        """The collectives that a step executes, with their counts, and the bytes that all of them move."""
        run = subprocess.run([PARTITA_RUN, self.path("m.partita"), "--input", "input_ids=arange", "--input", "targets=ones", "--input",
                              "lr=ones", "--input", "step=ones", "--profile", "--json"], check=True, stdout=subprocess.PIPE)
        calls, moved = {}, 0
        for row in json.loads(run.stdout)["profile"]:
            name = row["name"].removeprefix("start ")
            if name.startswith(("all_gather", "reduce_scatter", "all_reduce")):
                calls[name] = calls.get(name, 0) + row["calls"]
                moved += row["bytes"]
        return calls, moved

    def test_what_is_gathered_ahead_is_gathered_no_more_often(self):
        """Each matrix of a layer is gathered twice per microbatch, and its gradient is scattered once."""
        layers, microbatches, found = 3, 2, {}
        for gather in ("", "gather: {prefetch: 0}\n", "gather: {prefetch: 1}\n", "gather: {prefetch: 2}\n"):
            with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
                file.write("mesh: {d: 2}\nshard: [{B: d}]\nzero: 3\nmicrobatches: %d\n%s" % (microbatches, gather))
            self.compile(32, layers, "--plan", self.path("plan.yaml"))
            found[gather] = self.collectives()
            self.assertEqual(found[gather], found[""], gather)
        calls, moved = found[""]
        explained = subprocess.run([PARTITA, "explain", self.folder, "--dim", "batch=4,seq=8", "--train", "adamw", "--plan",
                                    self.path("plan.yaml"), "--json"], check=True, stdout=subprocess.PIPE)
        self.assertEqual(moved, 2 * json.loads(explained.stdout)["bytes"])  # sent and received bytes
        times = 2 * layers * microbatches
        matrices = {"[16,32] to f32[32,32]": 4 * times, "[64,32] to f32[128,32]": times, "[32,64] to f32[32,128]": times,
                    # The embedding: gathered for the lookup, the product, and the gradient of the product.
                    "[32,32] to f32[64,32]": 3 * microbatches}
        for what, count in matrices.items():
            self.assertEqual(calls["all_gather f32%s over d" % what], count, what)
        scattered = sum(count * int(re.match(r"reduce_scatter sum f32\[2,(\d+)\]", name)[1]) * 2 for name, count in calls.items()
                        if name.startswith("reduce_scatter"))
        layer = 12 * 32 * 32 + 13 * 32
        self.assertEqual(scattered, microbatches * (layers * layer + 64 * 32 + 16 * 32 + 2 * 32))

    def test_what_is_held_is_gathered_once(self):
        """A step gathers each matrix once, and its results are bit-for-bit the same."""
        layers, found, trained = 3, {}, {}
        for hold in ("use", "step"):
            with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
                file.write("mesh: {d: 2}\nshard: [{B: d}]\nzero: 3\nmicrobatches: 2\ngather: {hold: %s}\n" % hold)
            self.compile(32, layers, "--plan", self.path("plan.yaml"))
            found[hold], trained[hold] = self.collectives(), self.train()
        self.assertEqual(trained["step"], trained["use"])
        calls, moved = found["step"]
        self.assertLess(moved, found["use"][1])
        gathered = sum(count * 2 * numbers_of(name) for name, count in calls.items() if name.startswith("all_gather"))
        self.assertEqual(gathered, layers * (12 * 32 * 32 + 13 * 32) + 64 * 32 + 2 * 32 + 8 * 32)
        scattered = {name: count for name, count in calls.items() if name.startswith("reduce_scatter")}
        self.assertEqual(scattered, {name: count for name, count in found["use"][0].items() if name.startswith("reduce_scatter")})

    def test_explain_says_what_is_overlapped(self):
        self.compile(32, 3, "--mesh", "d=2", "--shard", "B=d", "--zero", "3")
        explained = subprocess.run([PARTITA, "explain", self.folder, "--dim", "batch=4,seq=8", "--train", "adamw", "--mesh", "d=2", "--shard",
                                    "B=d", "--zero", "3"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(explained, "beside other work: all_gather of [^\n]*\n  while block_forward\n")

    def test_in_pipelines_too(self):
        self.assert_same_without(32, 4, "--mesh", "pipe=2,d=2", "--shard", "D=pipe;B=d", "--zero", "3", "--microbatches", "2")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
