"""Imports, compiles and runs ONNX's backend tests. Every test that the importer accepts must pass.

With --interpreted they run through the references of the nn dialect instead of compiled code. With --networks only the networks
run, all of them.
"""

import os
import pwd
import re
import subprocess
import sys
import tempfile
import unittest

RUNNER = os.path.abspath("tests/conformance/onnx_backend_runner")
FETCH = os.path.abspath("tests/conformance/fetch_onnx_backend.sh")
# Number of passing tests of the 1,905 in onnx 1.22. A lower count means that the importer now refuses a test that it accepted before.
AT_LEAST = 1523
INTERPRETED = "--interpreted" in sys.argv
# Networks that take one or two seconds; --networks also runs the others.
QUICK = ["light/light_%s.onnx" % name for name in ("shufflenet", "squeezenet")]
NETWORKS = 9


class OnnxBackendTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Bazel hides HOME, but the cache is in the user's home directory.
        environment = dict(os.environ, HOME=pwd.getpwuid(os.getuid()).pw_dir)
        cls.data = subprocess.run([FETCH], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def run_tests(self, *arguments):
        with tempfile.TemporaryDirectory() as artifacts:
            executor = [] if INTERPRETED else ["--compiled=" + artifacts]
            result = subprocess.run([RUNNER, *executor, *arguments], cwd=self.data,
                                    stdout=subprocess.PIPE, text=True)
        print(result.stdout)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_operators(self):
        output = self.run_tests("--at-least=%d" % AT_LEAST, "node", "simple", "pytorch-operator", "pytorch-converted")
        passed, failed, skipped = map(int, re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", output).groups())
        self.assertEqual(failed, 0)
        self.assertGreater(passed + skipped, 1900)

    def test_networks(self):
        found = sorted("light/" + name for name in os.listdir(self.data + "/light") if name.endswith(".onnx"))
        self.assertEqual(len(found), NETWORKS)
        networks = found if "--networks" in sys.argv else QUICK
        self.run_tests("--at-least=%d" % len(networks), *networks)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["OnnxBackendTest.test_networks"] * ("--networks" in sys.argv))
