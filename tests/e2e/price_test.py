"""A step has one price: `partita plan` prints the same time for a plan as `partita simulate` for the program that `partita compile`
makes of it, and all three agree on memory. Tests models of every kind, on GPUs and CPUs, with free and fixed choices.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
TINY = os.path.abspath("tests/data/onnx-tiny")
EXPERTS = os.path.abspath("tests/data/experts-tiny")
# Sizes of the golden models.
GOLDEN = {
    "gpt2": "batch=8,seq=8",
    "gpt2_4l": "batch=8,seq=8",
    "bert_mlm": "batch=8,seq=8",
    "t5": "batch=8,seq=8,dec=6",
    "vit": "batch=8",
    "vit_3l": "batch=8",
    "coatnet_64": "batch=8",
    "coatnet_bias": "batch=8",
}
CLUSTERS = ("4x a100-80-sxm", "4x h100-sxm", "2x cpu")
# A pipeline, ZeRO and recomputation.
FIXED = ("pp=2,schedule=1f1b", "dp=4,zero=1", "dp=4,zero=3,recompute=full", "pp=2,dp=2,schedule=zb-h1,recompute=none")
FULL_SIZE = (
    ("gpt2-xl", "batch=64,seq=1024", "64x a100-80-sxm", "bf16"),
    ("gpt2-xl", "batch=64,seq=1024", "64x h100-sxm", "bf16"),
    ("llama-2-7b", "batch=64,seq=2048", "4 nodes x a100-80-sxm", "bf16"),
    ("mixtral-8x7b", "batch=128,seq=4096", "64x h100-sxm", "bf16"),
    ("coatnet-0", "batch=64", "8x a100-80-sxm", "bf16"),
    ("coatnet-3", "batch=64", "8x a100-80-sxm", "bf16"),
)


class PriceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def partita(self, *arguments):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, " ".join(arguments) + "\n" + done.stdout + done.stderr)
        return json.loads(done.stdout)

    def compare(self, model, cluster, *options):
        planned = self.partita("plan", *model, "--cluster", cluster, "--json", "-o", "plan.yaml", *options)
        compiled = self.partita("compile", *model, "--plan", "plan.yaml", "--train", planned["train"], "--target", planned["target"],
                                "-o", "step.partita", "--json")
        simulated = self.partita("simulate", "step.partita", "--cluster", cluster, "--json")
        print("%s on %s, %s: %s: planned %.6f ms, simulated %.6f ms; %d bytes, %d, %d" % (
            os.path.basename(os.path.dirname(model[0])) or model[0], cluster, " ".join(options), planned["division"], 1e3 * planned["step_seconds"],
            1e3 * simulated["step_seconds"], planned["memory_bytes"], simulated["memory_bytes"], compiled["memory"]["total"]))
        self.assertLess(abs(planned["step_seconds"] / simulated["step_seconds"] - 1), 1e-6)
        self.assertEqual(planned["memory_bytes"], simulated["memory_bytes"])
        self.assertEqual(planned["memory_bytes"], compiled["memory"]["total"])
        return planned


class ModelTest(PriceTest):
    def compare_model(self, name, cluster):
        with self.subTest(model=name, cluster=cluster):
            self.compare([os.path.join(TINY, name, "model_train.onnx"), "--dim", GOLDEN[name]], cluster, "--effort", "4000")

    def compare_fixed(self, fixed, cluster):
        model = [os.path.join(TINY, "gpt2_4l", "model_train.onnx"), "--dim", "batch=16,seq=8"]
        with self.subTest(fixed=fixed, cluster=cluster):
            self.compare(model, cluster, "--fix", fixed, "--precision", "bf16", "--effort", "4000")


# Every model and every fixed choice, on one of the clusters each.
class GoldenTest(ModelTest):
    def test_every_model(self):
        for index, name in enumerate(GOLDEN):
            self.compare_model(name, CLUSTERS[index % len(CLUSTERS)])

    def test_pipelines_zero_and_recomputation(self):
        for index, fixed in enumerate(FIXED):
            self.compare_fixed(fixed, CLUSTERS[index % 2])


# The other clusters; part of //tests:long.
class OtherClustersTest(ModelTest):
    def test_every_model(self):
        for index, name in enumerate(GOLDEN):
            for other in (1, 2):
                self.compare_model(name, CLUSTERS[(index + other) % len(CLUSTERS)])

    def test_pipelines_zero_and_recomputation(self):
        for index, fixed in enumerate(FIXED):
            self.compare_fixed(fixed, CLUSTERS[(index + 1) % 2])


class ExpertsTest(PriceTest):
    def test_every_division_of_experts(self):
        for name, choices in (("mixtral", ("", "ep=4", "tp=2,ep=2")), ("qwen3_moe", ("ep=2",)), ("deepseek_v3", ("pp=2,ep=2,schedule=1f1b",))):
            for fixed in choices:
                with self.subTest(model=name, fixed=fixed):
                    planned = self.compare([os.path.join(EXPERTS, name), "--dim", "batch=8,seq=8"], "4x h100-sxm", "--effort", "4000",
                                           *(("--fix", fixed) if fixed else ()))
                    if fixed:
                        self.assertIn("X ", planned["division"])

    def test_rows_of_our_own_with_experts(self):
        columns = "model_family,layers,hidden,heads,ffn,vocab,seq_len,gbs,n_gpus,gpu,moe_experts,moe_topk,mbs"
        sizes = "llama,2,64,4,128,256,32,8,4,h100-sxm,4,2,2"
        with open(os.path.join(self.folder, "rows.csv"), "w", encoding="utf-8") as file:
            file.write("%s,ep,tp,cp,dp\n%s,4,1,1,4\n%s,1,1,1,4\n%s,2,2,1,2\n%s,4,1,2,2\n" % (columns, sizes, sizes, sizes, sizes))
        subprocess.run([PARTITA, "simulate", "--sweep", "rows.csv", "-o", "predicted.csv"], check=True, cwd=self.folder)
        with open(os.path.join(self.folder, "predicted.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        divided, whole, both, refused = rows
        # Experts over the devices of the batch: rows travel to them.
        self.assertIn("send_rows data", divided["predicted_traffic"])
        self.assertNotIn("send_rows", whole["predicted_traffic"])
        self.assertIn("tensor", both["predicted_traffic"])
        self.assertIn("expected experts over whole axes", refused["predicted_problem"])


class FullSizeTest(PriceTest):
    def test_full_size(self):
        for name, sizes, cluster, precision in FULL_SIZE:
            with self.subTest(model=name, cluster=cluster):
                self.compare([name, "--dim", sizes], cluster, "--precision", precision)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
