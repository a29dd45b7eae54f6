"""Peak memory of a run is the planned memory (arena, weights as held, library scratch) plus at most 64 MB."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
MODELS = {"gpt2": ("batch=1,seq=128", ["--input", "input_ids=random:0:100"]), "vit-b-16": ("batch=1", []), "coatnet-0": ("batch=4", [])}


class MemoryTest(unittest.TestCase):
    def test_peak_equals_plan(self):
        for model, (dims, inputs) in MODELS.items():
            with self.subTest(model), tempfile.TemporaryDirectory() as folder:
                artifact = os.path.join(folder, "m.partita")
                compiled = subprocess.run([PARTITA, "compile", model, "--dim", dims, "-o", artifact, "--json"],
                                          check=True, capture_output=True, text=True)
                run = subprocess.run([PARTITA_RUN, artifact, "--random-inputs", "1", "--json"] + inputs, check=True,
                                     capture_output=True, text=True)
                memory = json.loads(run.stdout)["memory"]
                planned = json.loads(compiled.stdout)["arena_bytes"]
                self.assertEqual(memory["arena"], planned)
                bound = memory["total"] + memory["mapped"] + 64e6
                print("%-10s peak %.1f MB, planned %.1f MB (arena %.1f)" % (
                    model, memory["peak_process"] / 1e6, bound / 1e6 - 64, memory["arena"] / 1e6))
                self.assertLess(memory["peak_process"], bound)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
