"""Optimizer states on the host: tables list them separately, `memory` excludes them, and training is bit-for-bit the same."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 8, "n_embd": 32, "n_layer": 2,
          "n_head": 4}
PLAN = "mesh: {d: 2}\nshard: [{B: d}]\nprecision: bf16\nzero: %d\n%s"
OFFLOAD = "offload: optimizer\n"


class OffloadTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(self.path("model"))
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(600) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compile(self, name, plan, options=("--train", "adamw")):
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write(plan)
        return subprocess.run([PARTITA, "compile", self.path("model"), "--dim", "batch=4,seq=8", "--plan", self.path("plan.yaml"),
                               "-o", self.path(name), "--json", *options], capture_output=True, text=True, timeout=300)

    def train(self, name):
        run = subprocess.run([PARTITA_RUN, "train", self.path(name), "--data", self.path("tokens.bin"), "--steps", "4", "--lr", "0.01",
                              "--checkpoint-dir", self.path(name + ".d"), "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        folder, tensors = self.path(name + ".d/step-%08d" % 4), {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                with open(os.path.join(folder, file), "rb") as data:
                    tensors[file] = data.read()
        self.assertTrue(tensors)
        return json.loads(run.stdout), tensors

    def test_tables_and_training(self):
        for zero in (0, 1):
            with self.subTest(zero=zero):
                tables, uses, tensors = {}, {}, {}
                for name, more in (("device", ""), ("host", OFFLOAD)):
                    compiled = self.compile(name + str(zero), PLAN % (zero, more))
                    self.assertEqual(compiled.returncode, 0, compiled.stderr)
                    tables[name] = json.loads(compiled.stdout)["memory"]
                    report, tensors[name] = self.train(name + str(zero))
                    uses[name] = report["memory"]
                    uses[name + " losses"] = report["losses"]
                states = tables["device"]["optimizer_states"]
                self.assertGreater(states, 0)
                self.assertEqual(tables["device"]["host"], 0)
                self.assertEqual(tables["host"], {**tables["device"], "optimizer_states": 0, "host": states,
                                                  "total": tables["device"]["total"] - states})
                self.assertEqual(uses["device"]["host"], 0)
                self.assertEqual(uses["host"]["host"], states)
                self.assertEqual(uses["host"]["globals"], uses["device"]["globals"] - states)
                # Totals are compared without staging memory, which only unaligned tensors use.
                totals = {name: uses[name]["total"] - uses[name]["staging"] for name in ("host", "device")}
                self.assertEqual(totals["host"], totals["device"] - states)
                self.assertEqual(uses["host losses"], uses["device losses"])
                self.assertEqual(tensors["host"], tensors["device"])

    def test_memory_limits_the_device(self):
        table = json.loads(self.compile("m", PLAN % (0, "")).stdout)["memory"]
        limit = "memory: %d B\n" % (table["total"] - 1)
        refused = self.compile("m", PLAN % (0, limit))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("offload: optimizer (keeps", refused.stderr)
        self.assertEqual(self.compile("m", PLAN % (0, OFFLOAD + limit)).returncode, 0)

    def test_only_training_keeps_states(self):
        refused = self.compile("m", "mesh: {d: 2}\nshard: [{B: d}]\n" + OFFLOAD, options=())
        self.assertEqual(refused.returncode, 1)
        self.assertIn("plan.yaml:3:10: offload: keeps optimizer states on the host, but this program has none", refused.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
