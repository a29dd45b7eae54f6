"""Compile time does not grow with depth: layers are functions, compiled once.

GPT-2 XL (48 layers) compiles in under 10 s and 2 GB; 96 layers cost at most 1.3 times as much (medians, alternating).
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PARTITA = "compiler/tools/partita"
GPT2_XL = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_positions": 1024,
           "n_embd": 1600, "n_head": 25, "n_layer": 48, "activation_function": "gelu_new",
           "layer_norm_epsilon": 1e-5}


class CompileTimeTest(unittest.TestCase):
    def compile_seconds(self, folder, layers):
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(dict(GPT2_XL, n_layer=layers), file)
        start = time.monotonic()
        subprocess.run([PARTITA, "compile", folder, "--dim", "batch=1,seq=128", "-o", os.path.join(folder, "m.partita")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start

    def test_depth_is_nearly_free(self):
        with tempfile.TemporaryDirectory() as folder:
            times = {48: [], 96: []}
            for _ in range(3):
                for layers in times:
                    times[layers].append(self.compile_seconds(folder, layers))
        shallow, deep = statistics.median(times[48]), statistics.median(times[96])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6  # KB -> GB
        print("48 layers %.2f s, 96 layers %.2f s (%.2fx), peak %.2f GB" % (shallow, deep, deep / shallow, peak))
        self.assertLess(shallow, 10)
        self.assertLess(peak, 2)
        self.assertLess(deep / shallow, 1.3)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
