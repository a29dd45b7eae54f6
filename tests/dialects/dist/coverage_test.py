# Checks that every operation of the dist dialect has tests: ops.mlir has the example in its description, and
# invalid.mlir violates each of its numbered constraints in a function named @<op>_c<n>..., which verify.cc checks under
# "// C<n>".
import os
import re
import sys
import unittest
from pathlib import Path

# Under Bazel, this test's runfiles; otherwise the checkout.
ROOT = (Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"]) if "TEST_SRCDIR" in os.environ
        else Path(__file__).resolve().parents[3])
TESTS = ROOT / "tests/dialects/dist"


def operations():
    """{mnemonic: (example, constraint numbers)} from ops.td."""
    text = (ROOT / "dialects/dist/ops.td").read_text()
    found = {}
    for definition in re.split(r"\ndef Dist_\w+Op : ", text)[1:]:
        mnemonic = re.search(r'"(\w+)"', definition).group(1)
        description = re.search(r"description = \[\{(.*?)\}\];", definition, re.S).group(1)
        example = re.search(r"Example[^`]*: `([^`]*)`", description)
        found[mnemonic] = (example and example.group(1), [int(n) for n in re.findall(r"- \(C(\d+)\)", description)])
    return found


class Coverage(unittest.TestCase):
    def test_finds_the_operations(self):
        self.assertEqual(len(operations()), 18)

    def test_examples_run(self):
        for op, (example, _) in operations().items():
            with self.subTest(op=op):
                self.assertTrue(example, "expected an example in the description")
                self.assertIn(example, (TESTS / "ops.mlir").read_text())

    def test_constraints_are_numbered_and_violated(self):
        invalid = (TESTS / "invalid.mlir").read_text()
        for op, (_, constraints) in operations().items():
            with self.subTest(op=op):
                self.assertEqual(constraints, list(range(1, len(constraints) + 1)))
                for number in constraints:
                    self.assertRegex(invalid, rf"@{op}_c{number}(_\w+)?\(")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
