# Checks that every operation of the nn dialect has tests: <op>.mlir has the example in its description, and
# <op>_invalid.mlir violates each of its numbered constraints in a function named @<op>_c<n>..., which verify*.cc checks
# under "// C<n>".
import os
import re
import sys
import unittest
from pathlib import Path

# Under Bazel, this test's runfiles; otherwise the checkout.
ROOT = (Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"]) if "TEST_SRCDIR" in os.environ
        else Path(__file__).resolve().parents[3])
TESTS = ROOT / "tests/dialects/nn"


def operations():
    """{mnemonic: (example, constraint numbers)} from ops.td and the files that it includes."""
    text = "".join(path.read_text() for path in sorted((ROOT / "dialects/nn").glob("*.td")))
    found = {}
    for definition in re.split(r"\ndef NN_\w+Op : ", text)[1:]:
        mnemonic = re.search(r'<"(\w+)"', definition).group(1)
        description = re.search(r"description = \[\{(.*?)\}\];", definition, re.S).group(1)
        example = re.search(r"Example[^`]*: `([^`]*)`", description)
        constraints = re.findall(r"- \(C(\d+)\)", description)
        found[mnemonic] = (example and example.group(1), [int(number) for number in constraints])
    return found


class Coverage(unittest.TestCase):
    def test_finds_the_operations(self):
        self.assertGreater(len(operations()), 20)

    def test_examples_run(self):
        for op, (example, _) in operations().items():
            with self.subTest(op=op):
                self.assertTrue(example, "expected an example in the description")
                self.assertIn(example, (TESTS / f"{op}.mlir").read_text())

    def test_constraints_are_numbered_and_violated(self):
        for op, (_, constraints) in operations().items():
            with self.subTest(op=op):
                self.assertEqual(constraints, list(range(1, len(constraints) + 1)))
                invalid = (TESTS / f"{op}_invalid.mlir").read_text()
                for number in constraints:
                    self.assertRegex(invalid, rf"@{op}_c{number}(_\w+)?\(")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
