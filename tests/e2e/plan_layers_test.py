"""partita plan on models with different layers: plans compile, divide without changing results, beat one mapping for all layers, and
fit limits.
"""

import functools
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


# Several tests look at one plan, which is searched for once.
@functools.lru_cache(maxsize=None)
def planned_coatnet():
    done = subprocess.run([PARTITA, "plan", "coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


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
        facts = planned_coatnet()
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
        text = self.partita("plan", *options, "--effort", "1")
        for part in ("mesh: {", "chosen: ", "functions, mean of a device", "compiled and simulated in ", "runners-up:", "in bf16: ",
                     "to run it: partita compile"):
            self.assertIn(part, text)

    # Half as many images as devices: rows are divided where images are large, heads and widths where weights are large.
    def test_beats_one_mapping_for_all(self):
        facts = planned_coatnet()
        self.assertIn("at:", facts["text"])
        uniform = [other for other in facts["alternatives"] if "at:" not in other["text"]]
        self.assertTrue(uniform)
        for other in uniform:
            self.assertGreater(other["step_seconds"], facts["step_seconds"])

    # With at least one image per device, the batch is divided, and nothing else.
    def test_large_batches_are_divided_by_images(self):
        facts = json.loads(self.partita("plan", "coatnet-0", "--dim", "batch=512", "--cluster", "8x a100-80-sxm", "--effort", "1", "--json"))
        self.assertTrue(facts["text"].startswith("mesh: {data: 8}\nshard:\n  - {B: data}\n"), facts["text"])

    # With less memory than the fastest plan needs, ZeRO, microbatches, recomputation and stages are tried.
    def test_limits_of_memory(self):
        options = ["coatnet-0", "--dim", "batch=64", "--cluster", "8x a100-80-sxm", "--effort", "1", "--json"]
        self.check_limit(options, 0.7)

    def check_limit(self, options, share):
        free = json.loads(self.partita("plan", *options))
        limit = int(free["memory_bytes"] * share)
        tight = json.loads(self.partita("plan", *options, "--memory", "%d B" % limit))
        self.assertLessEqual(tight["memory_bytes"], limit)
        self.assertTrue(any(word in tight["text"] for word in ("zero:", "microbatches:", "recompute:", "pipe:", "tensor:")), tight["text"])

    def test_fixed_choices(self):
        options = ["coatnet-0", "--dim", "batch=16", "--cluster", "8x a100-80-sxm", "--effort", "1", "--json"]
        for fixed, wanted in (
                ("tp=2", ("mesh: {data: 4, tensor: 2}",)),
                ("dp=8,zero=2,mbs=1,recompute=full", ("mesh: {data: 8}", "zero: 2", "microbatches: 2", "recompute: full")),
                ("pp=2,dp=4,schedule=gpipe,mbs=1", ("mesh: {pipe: 2, data: 4}", "schedule: gpipe", "microbatches: 4")),
                ("pp=2,tp=2,dp=2", ("mesh: {pipe: 2, data: 2, tensor: 2}", "schedule: 1f1b")),
                ("offload=y", ("offload: optimizer",))):
            with self.subTest(fixed=fixed):
                facts = json.loads(self.partita("plan", *options, "--fix", fixed))
                for each in [facts] + facts["alternatives"]:
                    for part in wanted:
                        self.assertIn(part, each["text"])

    # Parameters, gradients and states exceed the limit. With one device, only the host has more memory.
    def test_states_go_to_the_host(self):
        options = ["coatnet-0", "--dim", "batch=1", "--cluster", "1x a100-80-sxm", "--json"]
        free = json.loads(self.partita("plan", *options))
        self.assertNotIn("offload", free["text"])
        tight = json.loads(self.partita("plan", *options, "--memory", "%d B" % (0.7 * free["memory_bytes"])))
        self.assertIn("offload: optimizer", tight["text"])
        self.assertIn("found none", self.partita(
            "plan", *options, "--memory", "%d B" % (0.7 * free["memory_bytes"]), "--fix", "offload=n", code=1))

    def test_refusals(self):
        options = ["coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm"]
        self.assertIn("expected a division within 100.0 MB a device, found none: the least of ",
                      self.partita("plan", *options, "--memory", "100 MB", "--effort", "1", code=1))
        self.assertIn("--by-layer: applies to a model", self.partita(
            "plan", "--by-layer", "--row", "layers=2,hidden=64,heads=2,seq_len=8", "--batch", "4", "--cluster", "cpu", code=2))
        for fixed, refusal in (
                ("tp=3", "--fix tp: expected a divisor of the 8 devices, found 3"),
                ("dp=8", "--fix dp: expected a divisor of the batch's 4 samples, found 8"),
                ("cp=2", "--fix cp: expected tp, pp, dp, vpp, zero, mbs, offload, recompute or schedule for a model that is planned by its layers"),
                ("dp=1,zero=3", "--fix zero: expected 0 with dp=1, as ZeRO divides"),
                ("tp=2,pp=2,dp=1", "--fix tp x pp x dp: expected the 8 devices, found 4")):
            self.assertIn(refusal, self.partita("plan", *options, "--fix", fixed, code=1))
        self.assertIn("--batch: expected the model's own, 4, found 8", self.partita("plan", *options, "--batch", "8", code=1))


# Searches with the usual effort; part of //tests:long.
class LongSearchTest(PlanLayersTest):
    def test_limits_of_memory(self):
        self.check_limit(["coatnet-0", "--dim", "batch=64", "--cluster", "8x a100-80-sxm", "--json"], 0.5)

    def test_refusals(self):
        self.assertIn("expected a division within 100.0 MB a device, found none: the least of ", self.partita(
            "plan", "coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm", "--memory", "100 MB", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
