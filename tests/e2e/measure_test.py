"""partita measure describes this machine as a cluster, which simulate and plan accept."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2_4l")


class MeasureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.environment = dict(os.environ, XDG_CACHE_HOME=cls.folder.name)

    def partita(self, *arguments, code=0):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder.name,
                              env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_a_machine_that_was_measured_is_a_cluster(self):
        self.partita("compile", GPT2, "--dim", "batch=4,seq=8", "--train", "adamw", "--mesh", "d=2", "--shard", "B=d", "-o", "gpt2.partita")
        refusal = self.partita("simulate", "gpt2.partita", "--cluster", "local", code=1).stderr
        self.assertIn("run `partita measure` first", refusal)
        done = self.partita("measure", "--devices", "2", "--small", "--repeat", "2", "--precision", "f32", "--json")
        facts = json.loads(done.stdout)
        self.assertEqual(facts["output"], os.path.join(self.folder.name, "partita/local.yaml"))
        names = [table["of"] for table in facts["tables"]]
        for name in ("product f32 nn", "product f32 tn", "convolution f32 weight_grad depthwise", "copy", "all_reduce 2", "send"):
            self.assertIn(name, names)
        # Speeds depend on the machine and its load, so the test does not check them.
        for table in facts["tables"]:
            self.assertGreater(table["lowest"], 0, table)
            self.assertLess(table["highest"], 1e16, table)
        self.assertIn("product f32 packed", done.stderr)  # progress
        simulated = json.loads(self.partita("simulate", "gpt2.partita", "--cluster", "local", "--operations", "1000", "--json").stdout)
        self.assertEqual((simulated["cluster"], simulated["devices"]), ("local", 2))
        self.assertGreater(simulated["step_seconds"], 0)
        labels = {row.get("label", "") for row in simulated["operations"]}
        self.assertTrue(any(label.startswith("gemm ") for label in labels), labels)
        plan = self.partita("plan", GPT2, "--dim", "batch=4,seq=8", "--cluster", "local").stdout
        self.assertIn("for 2 devices of local", plan)

    def test_what_cannot_be_measured_is_refused(self):
        self.assertIn("--precision", self.partita("measure", "--precision", "f64", code=2).stderr)
        self.assertIn("--devices", self.partita("measure", "--devices", "0", code=2).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
