"""Installs the two wheels into a new environment, without a network, and tries them there: wheels_test.py WHEEL..."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

# Command lines of the wheels, taken by main.
WHEELS = []
MOST_BYTES = 100_000_000  # PyPI's limit of one file
MOST_SECONDS = 60  # from pip install to the first right answer

# Runs in the new environment, in an empty folder: sys.argv[1] is a model.
SCRIPT = """
import os, sys
import numpy
import partita

for module in (partita, sys.modules["partita_runtime"]):
    assert os.path.dirname(module.__file__).startswith(sys.prefix), module.__file__
ids = numpy.arange(24).reshape(2, 12)
net = partita.compile(sys.argv[1], dims={"batch": 2, "seq": 12}, output="m.partita")
whole = net(ids)
divided = partita.compile(sys.argv[1], dims={"batch": 2, "seq": 12}, mesh={"tensor": 2}, shard="M=tensor,N=tensor")(ids)
numpy.testing.assert_allclose(divided, whole, rtol=1e-4, atol=1e-5)
found, = partita.Session("m.partita").run(None, {"input_ids": ids})
numpy.testing.assert_array_equal(found, whole)
step = partita.compile(sys.argv[1], dims={"batch": 2, "seq": 12}, train=partita.adamw(1e-2))
state = step.init()
losses = [step(state, ids, ids)[1] for _ in range(5)]
assert losses[4] < losses[0], losses
assert partita.verify(sys.argv[1], mesh={"tensor": 2}, shard="M=tensor").equal
assert partita.plan(sys.argv[1], dims={"batch": 8, "seq": 8}, cluster="2x a100-80-sxm").step_seconds > 0
# All libraries come from the wheels, or are promised by their tag.
with open("/proc/self/maps", encoding="utf-8") as file:
    libraries = {line.split()[-1] for line in file if ".so" in line}
strays = [path for path in libraries for name in ("MLIR", "LLVM", "dnnl", "absl", "partita") if name in path and not path.startswith(sys.prefix)
          and not path.startswith("/tmp")]
assert not strays, strays
print("first answer, training, verification and plan are right")
"""


class WheelsTest(unittest.TestCase):
    def run_in(self, *command, **options):
        environment = {"PATH": "/usr/bin:/bin", "HOME": self.folder, "LANG": "C.UTF-8"}
        done = subprocess.run(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, **options)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_wheels(self):
        self.assertEqual(len(WHEELS), 2)
        for wheel in WHEELS:
            size = os.path.getsize(wheel)
            print("%s: %.1f MB" % (os.path.basename(wheel), size / 1e6))
            self.assertLess(size, MOST_BYTES)
            self.assertIn("-py3-none-manylinux_2_36_x86_64.whl", wheel)
        model = os.path.abspath("tests/data/onnx-tiny/gpt2/model_train.onnx")
        with tempfile.TemporaryDirectory() as self.folder:
            python = os.path.join(self.folder, "venv/bin/python")
            # Debian's numpy is the only package from outside.
            self.run_in("/usr/bin/python3", "-m", "venv", "--system-site-packages", "venv")
            begin = time.monotonic()
            self.run_in(python, "-m", "pip", "install", "--no-index", "--quiet", *WHEELS)
            installed = time.monotonic()
            first = "import partita, numpy; print(partita.compile(%r, dims={'batch': 1, 'seq': 4})(numpy.zeros((1, 4), 'int64')).shape)" % model
            self.assertEqual(self.run_in(python, "-c", first).strip(), "(1, 4, 128)")
            seconds = time.monotonic() - begin
            print("installed in %.1f s, first answer after %.1f s" % (installed - begin, seconds))
            self.assertLess(seconds, MOST_SECONDS)
            print(self.run_in(python, "-c", SCRIPT, model))
            text = self.run_in(os.path.join(self.folder, "venv/bin/partita"), "inspect", "m.partita")
            self.assertIn("input_ids", text)


if __name__ == "__main__":
    WHEELS = [os.path.abspath(path) for path in sys.argv[1:]]
    unittest.main(argv=sys.argv[:1], verbosity=1)
