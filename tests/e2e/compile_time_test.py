"""Compile time does not grow with depth, because layers are functions that are compiled once, nor with the number of devices,
because all devices run one program.

GPT-2 XL (48 layers) compiles in under 10 s and 2 GB. 96 layers cost at most 1.3 times as much. 4,096 devices cost at most 1.2
times as much as 8, in an artifact of equal size. A divided GPT-3 175B compiles in under 20 s.

Times are CPU times, user plus system, so other load on the machine does not count. Each time is the minimum of seven alternating
runs, because disturbances only add time.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
GPT2_XL = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_positions": 1024,
           "n_embd": 1600, "n_head": 25, "n_layer": 48, "activation_function": "gelu_new",
           "layer_norm_epsilon": 1e-5}
GPT3 = dict(GPT2_XL, n_positions=2048, n_embd=12288, n_head=96, n_layer=96)
ROUNDS = 7
MEGATRON = "B=data;M=tensor,N=tensor,V=tensor;L=tensor"


class CompileTimeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, config, dims, *options):
        """CPU seconds, bytes of the artifact, peak memory in GB."""
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        output = os.path.join(self.folder, "m.partita")
        process = subprocess.Popen([PARTITA, "compile", self.folder, "--dim", dims, "-o", output, *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # tells Popen that the process has been waited for
        self.assertEqual(process.returncode, 0)
        return usage.ru_utime + usage.ru_stime, os.path.getsize(output), usage.ru_maxrss / 1e6  # KB -> GB

    def test_depth_is_nearly_free(self):
        times, peaks = {48: [], 96: []}, []
        for _ in range(ROUNDS):
            for layers in times:
                seconds, _, peak = self.compile(dict(GPT2_XL, n_layer=layers), "batch=1,seq=128")
                times[layers].append(seconds)
                peaks.append(peak)
        shallow, deep, peak = min(times[48]), min(times[96]), max(peaks)
        print("48 layers %.2f s, 96 layers %.2f s (%.2fx), peak %.2f GB" % (shallow, deep, deep / shallow, peak))
        self.assertLess(shallow, 10)
        self.assertLess(peak, 2)
        self.assertLess(deep / shallow, 1.3)

    def test_devices_are_nearly_free(self):
        times, sizes = {8: [], 4096: []}, {}
        for _ in range(ROUNDS):
            for devices in times:
                # Four texts per group of four devices.
                seconds, sizes[devices], _ = self.compile(GPT2_XL, "batch=%d,seq=128" % devices, "--mesh",
                                                          "data=%d,tensor=4" % (devices // 4), "--shard", MEGATRON)
                times[devices].append(seconds)
        few, many = min(times[8]), min(times[4096])
        print("8 devices %.2f s, 4096 devices %.2f s (%.2fx), %d bytes" % (few, many, many / few, sizes[8]))
        self.assertLess(many / few, 1.2)
        self.assertEqual(sizes[8], sizes[4096])

    def test_gpt3_divided(self):
        seconds, _, _ = self.compile(GPT3, "batch=128,seq=2048", "--mesh", "data=128,tensor=8", "--shard", MEGATRON)
        print("GPT-3 175B over 1,024 devices: %.2f s" % seconds)
        self.assertLess(seconds, 20)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
