"""Bytes per parameter and device match the ZeRO paper (Rajbhandari et al., 2020, figure 1): Adam in 16 bits over N devices.

Two bytes for the parameter, two for its gradient, twelve for the optimizer states (an f32 copy and two moments): 16 at stage 0, 4
+ 12/N at stage 1 (here already 2 + 14/N), 2 + 14/N at stage 2, 16/N at stage 3. Read from the compiler's memory table, and
measured in the processes.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
DEVICES = 4
# Bytes of parameters, gradients, states. Also at stage 1, gradients of a single batch are reduced as soon as they
# exist.
PAPER = {0: (2, 2, 12), 1: (2, 2 / DEVICES, 12 / DEVICES), 2: (2, 2 / DEVICES, 12 / DEVICES), 3: (2 / DEVICES, 2 / DEVICES, 12 / DEVICES)}
# Tensors that are exchanged together exist four times: as computed, packed, received, and while unpacked. This is at
# most that many buckets of 25 MiB, for any model size. One more bucket is in flight while the next one is filled.
BUCKET, BUCKETS = 25 * 2**20, 4 + 1
LAYERS = 24
# Memory of the allocator, the program and its threads.
OTHER_MEMORY = 64e6


class ZeroMemoryTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compile(self, zero, width, layers):
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 512, "n_positions": 32, "n_embd": width,
                  "n_layer": layers, "n_head": 4}
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        compiled = subprocess.run(
            [PARTITA, "compile", self.folder.name, "--dim", "batch=%d,seq=8" % DEVICES, "--train", "adamw", "--mesh", "d=%d" % DEVICES,
             "--shard", "B=d", "--zero", str(zero), "--precision", "bf16", "-o", self.path("m.partita"), "--json"],
            check=True, capture_output=True, text=True)
        return json.loads(compiled.stdout)

    def test_table_of_a_large_model(self):
        for zero, (parameters, gradients, states) in PAPER.items():
            with self.subTest(zero=zero):
                report = self.compile(zero, width=1024, layers=LAYERS)
                memory, count = report["memory"], report["parameter_elements"]
                slack = BUCKETS * BUCKET / count
                # At stage 3: the weights of the current layer, and of the next one, which is gathered meanwhile.
                gathered = 2 * 2 / LAYERS if zero == 3 else 0
                print("zero %d, %.0f million parameters, bytes a parameter and device: %s" % (
                    zero, count / 1e6, {key: round(value / count, 3) for key, value in memory.items()}), flush=True)
                # A position table or a norm may not be divisible.
                self.assertAlmostEqual(memory["parameters"] / count, parameters, delta=0.01)
                self.assertAlmostEqual(memory["optimizer_states"] / count, states, delta=0.01)
                self.assertGreaterEqual(memory["most_gradients"] / count, gradients - 0.01)
                self.assertLessEqual(memory["most_gradients"] / count, gradients + slack)
                self.assertLessEqual(memory["total"] / count, parameters + gradients + states + gathered + slack)

    def test_processes_hold_what_the_table_says(self):
        text = self.path("text.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write("All the devices hold their own part, and no device holds the whole. " * 100)
        for zero, (parameters, _, states) in PAPER.items():
            with self.subTest(zero=zero):
                report = self.compile(zero, width=256, layers=6)
                run = subprocess.run([PARTITA_RUN, "train", self.path("m.partita"), "--data", "text:" + text, "--steps", "2", "--lr", "1e-3",
                                      "--json", "--quiet"], check=True, capture_output=True, text=True)
                held, table, count = json.loads(run.stdout)["memory"], report["memory"], report["parameter_elements"]
                print("zero %d: held %.3f bytes a parameter, the process %.3f" % (zero, held["total"] / count, held["peak_process"] / count),
                      flush=True)
                self.assertAlmostEqual(held["globals"] / count, parameters + states, delta=0.01)
                self.assertAlmostEqual(held["globals"], table["parameters"] + table["optimizer_states"] + table["derived_from_parameters"],
                                       delta=0.001 * held["globals"])
                self.assertEqual(held["arena"], report["arena_bytes"])
                self.assertLess(held["peak_process"], DEVICES * table["total"] + OTHER_MEMORY)
                self.assertGreater(held["peak_process"], 0.9 * DEVICES * table["total"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
