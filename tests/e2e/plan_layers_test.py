"""partita plan, layer by layer: plans of CoAtNets compile, divide without a difference, take what was predicted, and beat one mapping for all."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
DATA = os.path.abspath("tests/data/onnx-tiny")
# On which small models are worth dividing.
SLOW = """
name: slow
devices: %d
device: {kind: cpu, peak: {f32: 50 GFLOP/s}, memory: 8 GB, memory_bandwidth: 10 GB/s, units: 1, l2: 1 MB, launch: 0.1 us, kernel: 0.1 us}
levels: [{name: link, devices: %d, bandwidth: 10 GB/s, latency: 0.5 us}]
"""
# How far off a predicted step may be from the simulated one of the program for such GPUs.
DISTANCE = 0.03


class PlanLayersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def partita(self, *arguments, code=0):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def simulated(self, cluster, options, plan):
        with open(os.path.join(self.folder, "plan.yaml"), "w", encoding="utf-8") as file:
            file.write(plan)
        self.partita("compile", *options, "--plan", "plan.yaml", "--train", "adamw", "--target", "cuda:sm_80", "-o", "step.partita")
        return json.loads(self.partita("simulate", "step.partita", "--cluster", cluster, "--json"))["step_seconds"]

    def test_divided_is_undivided(self):
        for name, batch, devices in (("coatnet_64", 2, 4), ("coatnet_bias", 1, 2)):
            with self.subTest(model=name, batch=batch, devices=devices):
                with open(os.path.join(self.folder, "slow.yaml"), "w", encoding="utf-8") as file:
                    file.write(SLOW % (devices, devices))
                options = [os.path.join(DATA, name, "model_train.onnx"), "--dim", "batch=%d" % batch]
                facts = json.loads(self.partita("plan", "--cluster", "slow.yaml", *options, "--json", "-o", "plan.yaml"))
                self.assertEqual((facts["batch"], facts["devices"]), (batch, devices))
                self.assertIn("stages.0.blocks.0", [layer["name"] for layer in facts["layers"]])
                # The fastest that mixes mappings, the choice or not.
                mixed = [plan["text"] for plan in [facts] + facts["alternatives"] if "; " in plan["division"]]
                with open(os.path.join(self.folder, "plan.yaml"), "w", encoding="utf-8") as file:
                    file.write(mixed[0])
                self.partita("verify", *options, "--plan", "plan.yaml", "--train", "adamw")

    def test_facts(self):
        options = ["coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm"]
        facts = json.loads(self.partita("plan", *options, "--json"))
        self.assertAlmostEqual(sum(facts["parts"].values()), facts["step_seconds"], delta=1e-9)
        # What mixes mappings takes more than its layers by themselves.
        least = min([mesh["least_seconds"] for mesh in facts["meshes"]] + [facts["step_seconds"]])
        self.assertEqual(facts["least_seconds"], least)
        self.assertAlmostEqual(facts["gap"], facts["step_seconds"] / least - 1, delta=1e-9)
        self.assertLessEqual(facts["gap"], 0.03)
        self.assertTrue(all(mesh["compiled"] for mesh in facts["meshes"]))
        self.assertEqual(facts["not_compiled"], 0)
        names = [layer["name"] for layer in facts["layers"]]
        self.assertLess(names.index("stem"), names.index("stages.0.blocks.0"))
        self.assertLess(names.index("stages.3.blocks.1"), names.index("head"))
        self.assertIn("expected a transformer whose layers are alike", facts["because"])
        plans = [other["text"] for other in facts["alternatives"]] + [facts["text"]]
        self.assertEqual(len(set(plans)), len(plans))
        self.assertGreater(len(plans), 4)
        for other in facts["alternatives"]:
            self.assertGreaterEqual(other["slower"], 0)
        text = self.partita("plan", *options)
        for part in ("mesh: {", "chosen: data ", "stages.1.blocks.2", "in all, of gradients the exposed", "meshes compiled in ", "others:"):
            self.assertIn(part, text)

    # Half as many images as devices: rows where images are large, heads and widths where weights are.
    def test_beats_one_mapping_for_all(self):
        cluster, options = "8x a100-80-sxm", ["coatnet-0", "--dim", "batch=4"]
        facts = json.loads(self.partita("plan", *options, "--cluster", cluster, "--json"))
        mappings = {layer["name"]: layer["mapping"] for layer in facts["layers"]}
        self.assertEqual((mappings["stem"], mappings["stages.3.blocks.1"]), ("H", "M N V"))
        self.assertGreater(facts["parts"]["boundaries"], 0)
        best = self.simulated(cluster, options, facts["text"])
        self.assertLess(abs(facts["step_seconds"] / best - 1), DISTANCE)
        uniform = {}
        for other in facts["alternatives"]:
            if other["uniform"]:
                uniform.setdefault(other["division"].split(": ")[1], other)
        # Where nothing is divided by the inner axis, each of its devices computes the same.
        self.assertEqual(set(uniform), {"H of all", "M N V of all", "- of all"})
        del uniform["- of all"]
        for other in uniform.values():
            seconds = self.simulated(cluster, options, other["text"])
            print("%s: predicted %.2f ms, simulated %.2f; chosen: %.2f and %.2f" % (
                other["division"], 1e3 * other["step_seconds"], 1e3 * seconds, 1e3 * facts["step_seconds"], 1e3 * best))
            self.assertLess(abs(other["step_seconds"] / seconds - 1), DISTANCE)
            self.assertLess(best, seconds)

    # Launches are those of the compiled program: attention on tensor cores, masks of uneven heads.
    def test_transformers_take_what_was_predicted(self):
        cluster = "8x a100-80-sxm"
        for model, dims in (("gpt2", "batch=8,seq=1024"), ("vit-b-16", "batch=8")):
            options = [model, "--dim", dims]
            facts = json.loads(self.partita("plan", "--by-layer", *options, "--cluster", cluster, "--json"))
            # The choice, the batch and heads over all devices: 12 heads of 8 are uneven.
            wanted = [facts] + [other for other in facts["alternatives"] if other["division"] in (
                "data 1 x tensor 8: B of all", "data 8 x tensor 1: B of all", "data 1 x tensor 8: M N V of all")]
            self.assertGreater(len(wanted), 1)
            for other in wanted:
                with self.subTest(model=model, division=other["division"]):
                    seconds = self.simulated(cluster, options, other["text"])
                    print("%s, %s: predicted %.2f ms, simulated %.2f" % (
                        model, other["division"], 1e3 * other["step_seconds"], 1e3 * seconds))
                    self.assertLess(abs(other["step_seconds"] / seconds - 1), DISTANCE)

    # Images enough: each device takes its own, and nothing else is divided.
    def test_large_batches_are_divided_by_images(self):
        facts = json.loads(self.partita("plan", "coatnet-0", "--dim", "batch=512", "--cluster", "8x a100-80-sxm", "--json"))
        self.assertEqual(facts["text"], "mesh: {data: 8}\nshard:\n  - {B: data}\n")

    def test_refusals(self):
        options = ["coatnet-0", "--dim", "batch=4", "--cluster", "8x a100-80-sxm"]
        self.assertIn("expected a division within 100 MB a device, found none: the least is ",
                      self.partita("plan", *options, "--memory", "100 MB", code=1))
        self.assertIn("--by-layer: expected a model", self.partita(
            "plan", "--by-layer", "--row", "layers=2,hidden=64,heads=2,seq_len=8", "--batch", "4", "--cluster", "cpu", code=2))
        self.assertIn("--fix: expected none where each layer", self.partita("plan", *options, "--fix", "tp=2", code=1))
        self.assertIn("--batch: expected the model's own, 4, found 8", self.partita("plan", *options, "--batch", "8", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
