"""partita bench compares a model with other systems, and goes on without them."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
VIT = os.path.abspath("tests/data/onnx-tiny/vit/model_eval.onnx")
ROUNDS, ANSWER_MS = 3, 40.0

# Answers as peer.py does, without any package. Its output is the file OUTPUT, and each run takes ANSWER_MS.
STUB = """\
#!/usr/bin/python3 -S
import json, os, sys
request = json.loads(sys.argv[3])
assert sys.argv[1] == "-c" and "def serve" in sys.argv[2]
if request["system"] == os.environ.get("FAILS"):
    print(json.dumps({"error": "ModuleNotFoundError: No module named 'torch'"}), flush=True)
    sys.exit(1)
for name, path in request["inputs"]:
    assert os.path.getsize(path) > 128, path
with open(os.environ["REQUESTS"], "a") as log:
    print(json.dumps(request), file=log)
print(json.dumps({"outputs": [os.environ["OUTPUT"]]}), flush=True)
for line in sys.stdin:
    print(json.dumps({"times_ms": [ANSWER_MS], "cpu_ms": 70, "peak_bytes": 123456789}), flush=True)
"""


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.stub = os.path.join(cls.folder.name, "stub")
        with open(cls.stub, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(STUB).replace("ANSWER_MS", str(ANSWER_MS)))
        os.chmod(cls.stub, 0o755)
        cls.pt2 = os.path.join(cls.folder.name, "model.pt2")
        open(cls.pt2, "wb").close()  # for the stub alone
        cls.requests = os.path.join(cls.folder.name, "requests")
        cls.output = os.path.join(cls.folder.name, "out.npy")
        # No file of the machine's speeds, unless a test writes it.
        cls.environment = dict(os.environ, XDG_CACHE_HOME=cls.folder.name, REQUESTS=cls.requests, OUTPUT=cls.output)

    def bench(self, *arguments, code=0, **variables):
        if "--batch" not in arguments:
            arguments = ("--batch", "2", *arguments)
        done = subprocess.run([PARTITA, "bench", VIT, "--rounds", str(ROUNDS), "--seconds", "0.01", *arguments], capture_output=True,
                              text=True, check=False, env=dict(self.environment, **variables))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def write_expected_output(self):
        """Writes an output of the model for other random inputs: the stub's output has the right shape, and differs."""
        artifact, outputs = os.path.join(self.folder.name, "vit.partita"), os.path.join(self.folder.name, "outputs")
        subprocess.run([PARTITA, "compile", VIT, "--dim", "batch=2", "-o", artifact], check=True, capture_output=True)
        with open(self.requests, encoding="utf-8") as log:
            request = json.loads(log.readlines()[-1])
        self.assertEqual([name for name, _ in request["inputs"]], ["pixel_values"])
        done = subprocess.run([PARTITA, "run", artifact, "--random-inputs", "9", "--output-dir", outputs, "--json"], check=True,
                              capture_output=True, text=True, env=self.environment)
        name = json.loads(done.stdout)["outputs"][0]["name"]
        os.replace(os.path.join(outputs, name + ".npy"), self.output)

    def test_peers_take_turns_and_are_compared(self):
        if os.path.exists(self.output):
            os.remove(self.output)
        # The stub's output is missing at first.
        row, = json.loads(self.bench("--python", self.stub, "--against", "onnxruntime", "--json").stdout)["rows"]
        partita, peer = row["systems"]
        self.assertIn("out.npy", peer["difference_problem"])
        self.write_expected_output()
        done = self.bench("--python", self.stub, "--peer-model", self.pt2, "--compile", "--threads", "1,2", "--json")
        facts = json.loads(done.stdout)
        self.assertEqual([row["threads"] for row in facts["rows"]], [1, 2])
        for row in facts["rows"]:
            partita, *peers = row["systems"]
            self.assertEqual(partita["name"], "partita")
            self.assertEqual([peer["name"] for peer in peers], ["onnxruntime", "torch", "torch-compile"])
            self.assertEqual(len(partita["rounds_ms"]), ROUNDS)
            # partita-run's own peak, without that of partita, which has the compiler's libraries in memory.
            self.assertTrue(1 << 20 < partita["peak_bytes"] < 80 << 20, partita["peak_bytes"])
            for peer in peers:
                self.assertEqual(peer["rounds_ms"], [ANSWER_MS] * ROUNDS)
                self.assertEqual((peer["cpu_ms"], peer["peak_bytes"]), (70, 123456789))
                self.assertAlmostEqual(peer["ratio"], partita["ms"] / ANSWER_MS)
                self.assertGreater(peer["difference"], 0)
                self.assertGreater(peer["magnitude"], 0)
            self.assertGreater(row["flops"], 1e5)
            self.assertTrue(row["layers"] and row["steps"])
            self.assertNotIn("product_share", row)
            self.assertEqual(row["batch"], 2)
        self.assertEqual(facts["compared_rows"], 2)
        self.assertIn("warning: outputs differ from those of torch", done.stderr)
        # Systems run in turns, in an order that rotates.
        order = [line.split(": ")[1] for line in done.stderr.splitlines() if "threads 1, round" in line]
        names = ["partita", "onnxruntime", "torch", "torch-compile"]
        self.assertEqual(order, [name for first in range(ROUNDS) for name in names[first:] + names[:first]])
        with open(self.requests, encoding="utf-8") as log:
            models = {request["system"]: request["model"] for request in map(json.loads, log)}
        self.assertEqual(models, {"onnxruntime": VIT, "torch": self.pt2, "torch-compile": self.pt2})

    def test_other_outputs_are_reported(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
        with open(self.output, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
        text = self.bench("--python", self.stub, "--against", "onnxruntime").stdout
        self.assertIn("not compared: expected an output of shape [2], found", text)

    def test_it_goes_on_without_python_and_packages(self):
        done = self.bench(PATH="/nonexistent")
        self.assertRegex(done.stdout, r"onnxruntime +not measured: expected python3 on PATH, found none; name one with --python")
        self.assertRegex(done.stdout, r"torch +not measured: it reads .pt2 files; give one of this model with --peer-model")
        self.assertRegex(done.stdout, r"partita +[0-9.]+ +[0-9.]+ +[0-9.]+ MB")
        self.assertIn("run `partita measure` once", done.stdout)
        done = self.bench("--python", self.stub, "--peer-model", self.pt2, "--against", "torch", FAILS="torch")
        self.assertIn("not measured: ModuleNotFoundError: No module named 'torch'", done.stdout)
        # Debian's Python without site packages has no numpy.
        lonely = os.path.join(self.folder.name, "lonely")
        with open(lonely, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n')
        os.chmod(lonely, 0o755)
        done = self.bench("--python", lonely, "--against", "onnxruntime")
        self.assertIn("not measured: ModuleNotFoundError: No module named 'numpy'", done.stdout)
        self.assertNotIn("onnxruntime", self.bench("--against", "none").stdout)

    def test_shares_of_the_machine(self):
        os.makedirs(os.path.join(self.folder.name, "measured/partita"), exist_ok=True)
        with open(os.path.join(self.folder.name, "measured/partita/local.yaml"), "w", encoding="utf-8") as file:
            file.write("name: local\ndevices: 1\ndevice:\n  name: cpu\n  kind: cpu\n  peak: {f32: 1 TFLOP/s}\n  memory: 1 GB\n"
                       "  memory_bandwidth: 10 GB/s\n")
        facts = json.loads(self.bench("--against", "none", "--threads", "1024", "--json",
                                      XDG_CACHE_HOME=os.path.join(self.folder.name, "measured")).stdout)
        row, = facts["rows"]
        seconds = row["systems"][0]["ms"] * 1e-3
        self.assertAlmostEqual(row["product_share"], row["flops"] / seconds / 1e12)
        self.assertAlmostEqual(row["memory_share"], row["bytes"] / seconds / 10e9)

    def test_wrong_options_are_refused(self):
        self.assertIn("expected a program, found '/nonexistent'", self.bench("--python", "/nonexistent", code=2).stderr)
        self.assertIn("expected one of --batch and --dim batch=, found both",
                      self.bench("--batch", "1", "--dim", "batch=2", code=2).stderr)
        self.assertIn("expected an .onnx or .pt2 file", self.bench("--peer-model", "model.txt", code=2).stderr)
        self.assertIn("--against", self.bench("--against", "jax", code=2).stderr)
        self.assertIn("--threads", self.bench("--threads", "0", code=2).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
