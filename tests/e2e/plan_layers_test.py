"""partita plan on models with different layers: plans compile, divide without changing results, beat one mapping for all layers, and
fit limits.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
DATA = os.path.abspath("tests/data/onnx-tiny")
# A cluster on which dividing small models pays off.
SLOW = """
name: slow
devices: %d
device: {kind: cpu, peak: {f32: 50 GFLOP/s}, memory: 8 GB, memory_bandwidth: 10 GB/s, units: 1, l2: 1 MB, launch: 0.1 us, kernel: 0.1 us}
levels: [{name: link, devices: %d, bandwidth: 10 GB/s, latency: 0.5 us}]
"""


class PlanLayersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def partita(self, *arguments, code=0):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def test_divided_is_undivided(self):
        for name, batch, devices in (("coatnet_64", 2, 4), ("coatnet_bias", 1, 2)):
            with self.subTest(model=name, batch=batch, devices=devices):
                with open(os.path.join(self.folder, "slow.yaml"), "w", encoding="utf-8") as file:
                    file.write(SLOW % (devices, devices))
                options = [os.path.join(DATA, name, "model_train.onnx"), "--dim", "batch=%d" % batch]
                facts = json.loads(self.partita("plan", "--cluster", "slow.yaml", *options, "--json", "-o", "plan.yaml"))
                self.assertEqual((facts["batch"], facts["devices"]), (batch, devices))
                # The fastest plan with mixed mappings, the choice or a runner-up.
                mixed = [plan["text"] for plan in [facts] + facts["alternatives"] if "at:" in plan["text"]]
                with open(os.path.join(self.folder, "plan.yaml"), "w", encoding="utf-8") as file:
                    file.write(mixed[0])
                self.partita("verify", *options, "--plan", "plan.yaml", "--train", "adamw")

    def test_undivided(self):
        options = [os.path.join(DATA, "gpt2", "model_train.onnx"), "--dim", "batch=8,seq=8", "--by-layer", "--cluster", "8x a100-80-sxm"]
        facts = json.loads(self.partita("plan", *options, "--json"))
        self.assertEqual(facts["undivided"], "shard:" not in facts["text"])
        self.assertTrue(facts["undivided"])
        self.assertIn("no division that was tried is faster than one device: all 8", self.partita("plan", *options))

    def test_facts(self):
        options = ["coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm"]
        facts = json.loads(self.partita("plan", *options, "--json"))
        self.assertAlmostEqual(sum(facts["parts"].values()), facts["step_seconds"], delta=1e-6 * facts["step_seconds"])
        self.assertAlmostEqual(sum(kind["seconds"] for kind in facts["kinds"]) + facts["parts"]["bubble"], facts["step_seconds"],
                               delta=1e-6 * facts["step_seconds"])
        self.assertIn("expected a transformer whose layers are alike", facts["because"])
        self.assertFalse(facts["undivided"])
        plans = [other["text"] for other in facts["alternatives"]] + [facts["text"]]
        self.assertEqual(len(set(plans)), len(plans))
        self.assertGreater(len(plans), 4)
        # Runners-up are different programs, not only different names.
        prices = {(other["step_seconds"], other["memory_bytes"]) for other in facts["alternatives"] + [facts]}
        self.assertEqual(len(prices), len(plans))
        for other in facts["alternatives"]:
            self.assertGreaterEqual(other["slower"], 0)
        text = self.partita("plan", *options)
        for part in ("mesh: {", "chosen: ", "functions, mean of a device", "compiled and simulated in ", "runners-up:", "in bf16: ",
                     "to run it: partita compile"):
            self.assertIn(part, text)

    # Half as many images as devices: rows are divided where images are large, heads and widths where weights are large.
    def test_beats_one_mapping_for_all(self):
        facts = json.loads(self.partita("plan", "coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm", "--json"))
        self.assertIn("at:", facts["text"])
        uniform = [other for other in facts["alternatives"] if "at:" not in other["text"]]
        self.assertTrue(uniform)
        for other in uniform:
            self.assertGreater(other["step_seconds"], facts["step_seconds"])

    # With at least one image per device, the batch is divided, and nothing else.
    def test_large_batches_are_divided_by_images(self):
        facts = json.loads(self.partita("plan", "coatnet-0", "--dim", "batch=512", "--cluster", "8x a100-80-sxm", "--json"))
        self.assertTrue(facts["text"].startswith("mesh: {data: 8}\nshard:\n  - {B: data}\n"), facts["text"])

    # With less memory than the fastest plan needs, ZeRO, microbatches, recomputation and stages are tried.
    def test_limits_of_memory(self):
        options = ["coatnet-0", "--dim", "batch=64", "--cluster", "8x a100-80-sxm", "--json"]
        free = json.loads(self.partita("plan", *options))
        limit = free["memory_bytes"] // 2
        tight = json.loads(self.partita("plan", *options, "--memory", "%d B" % limit))
        self.assertLessEqual(tight["memory_bytes"], limit)
        self.assertTrue(any(word in tight["text"] for word in ("zero:", "microbatches:", "recompute:", "pipe:", "tensor:")), tight["text"])

    def test_refusals(self):
        options = ["coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm"]
        self.assertIn("expected a division within 100.0 MB a device, found none: the least of ",
                      self.partita("plan", *options, "--memory", "100 MB", code=1))
        self.assertIn("--by-layer: applies to a model", self.partita(
            "plan", "--by-layer", "--row", "layers=2,hidden=64,heads=2,seq_len=8", "--batch", "4", "--cluster", "cpu", code=2))
        self.assertIn("--fix: expected none where each layer", self.partita("plan", *options, "--fix", "tp=2", code=1))
        self.assertIn("--batch: expected the model's own, 4, found 8", self.partita("plan", *options, "--batch", "8", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
