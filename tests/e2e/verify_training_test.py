"""partita verify on golden models: every gradient and every new parameter is the same under plans."""

import json
import os
import subprocess
import sys
import unittest

PARTITA = "compiler/tools/partita"
DATA = "tests/data/onnx-tiny"
MODELS = ("gpt2", "bert_mlm", "t5", "vit_3l", "coatnet_bias")
PLANS = {
    "B2MNV2": ["--mesh", "d=2,t=2", "--shard", "B=d;M=t,N=t,V=t"],
    "MNVL3": ["--mesh", "t=3", "--shard", "M=t,N=t,V=t;L=t", "--recompute", "full"],
    "B3Zero3": ["--mesh", "d=3", "--shard", "B=d", "--zero", "3"],
    "B2Zero2InParts": ["--mesh", "d=2", "--shard", "B=d", "--zero", "2", "--microbatches", "2", "--dim", "batch=4"],
    # Operations that are divided twice, once per use, in each of two microbatches. With these sizes, attention sees
    # many masked tokens.
    "B2Long": ["--mesh", "d=2", "--shard", "B=d", "--dim", "batch=2,seq=12"],
    "D2MNV2ZbV": ["--mesh", "p=2,t=2", "--shard", "D=p;M=t,N=t,V=t", "--schedule", "zb-v", "--microbatches", "2", "--dim", "batch=4"],
}


class VerifyTrainingTest(unittest.TestCase):
    def check(self, plan, models=MODELS):
        for model in models:
            with self.subTest(model):
                done = subprocess.run([PARTITA, "verify", os.path.join(DATA, model, "model_train.onnx"), "--train", "adamw", "--json"] + PLANS[plan],
                                      capture_output=True, text=True, check=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                facts = json.loads(done.stdout)
                print("%-14s %-12s %3d gradients, %4d values, largest %.1e, from the imported %.1e, %.1f s" % (
                    plan, model, facts["gradients"], facts["compared"], facts["largest"], facts["largest_to_imported"], facts["seconds"]),
                      flush=True)
                self.assertTrue(facts["equal"], facts.get("first"))
                self.assertGreater(facts["gradients"], 20)
                self.assertNotIn("unequal_results", facts)
                # Statistics of microbatches differ from the batch's.
                self.assertEqual(facts["imported_compared"], "--microbatches" not in PLANS[plan] or model != "coatnet_bias")

    def test_batch_and_width(self):
        self.check("B2MNV2")

    def test_width_and_sequence_uneven(self):
        self.check("MNVL3")

    def test_zero_3_uneven(self):
        self.check("B3Zero3")

    def test_microbatches(self):
        self.check("B2Zero2InParts")

    def test_masked_tokens(self):
        self.check("B2Long", ["bert_mlm"])

    def test_pipeline(self):
        self.check("D2MNV2ZbV")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
