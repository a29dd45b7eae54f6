"""Tests the demo's modules: they count and show wrong answers and failed commands, and draw and compare correctly."""

import contextlib
import io
import re
import struct
import sys
import tempfile
import unittest

import chart
import demo
import shell
import tensors

NAN = float("nan")


class DemoPartsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.shell = shell.Shell(folder.name, ())
        self.shell.environment["PATH"] = "/usr/bin:/bin"

    def printed(self, function, *arguments, **options):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            function(*arguments, **options)
        return output.getvalue()

    def write(self, name, content):
        with open(self.shell.path(name), "wb") as file:
            file.write(content)
        return self.shell.path(name)

    def test_commands_are_printed_as_they_run(self):
        self.assertEqual(self.printed(self.shell.run, "printf 'a 1\\nb 2\\n'", "&& echo 'a 3'", show="^a"),
                         "  $ printf 'a 1\\nb 2\\n' \\\n      && echo 'a 3'\n    a 1\n    a 3\n")

    def test_a_failed_command_says_why(self):
        with self.assertRaisesRegex(shell.Failed, "expected exit code 0, found 3\nbad"):
            self.printed(self.shell.run, "echo bad >&2; exit 3")

    def test_wrong_answers_are_counted(self):
        text = self.printed(self.shell.check, False, "2 + 2 is 5") + self.printed(self.shell.check, True, "2 + 2 is 4")
        self.assertEqual(text, "  WRONG: 2 + 2 is 5\n  right: 2 + 2 is 4\n")
        self.assertEqual((self.shell.right, self.shell.wrong), (1, 1))

    def test_without_the_programs_every_part_is_wrong(self):
        text = self.printed(demo.show_all, self.shell)
        parts = len(re.findall(r"^\d+\. ", text, re.MULTILINE))
        self.assertGreater(parts, 5)
        self.assertEqual((self.shell.right, self.shell.wrong), (0, parts))
        self.assertIn("partita: command not found", text)

    def test_values_are_found_in_text(self):
        self.assertEqual(shell.found(r"takes (\S+ ms)", "a step\ntakes 275.165 ms"), "275.165 ms")
        with self.assertRaisesRegex(shell.Failed, "expected output that matches 'takes', found:\nnothing"):
            shell.found("takes", "nothing")
        self.assertAlmostEqual(shell.seconds("275.165 ms"), 0.275165)
        self.assertEqual(shell.seconds("0.5 s"), 0.5)

    def test_collectives_are_counted_by_kind(self):
        self.assertEqual(demo.collectives("all_gather over t (2 devices): 48 B x 1\n  at x\nall_gather over t (2 devices): 7 B x 2\n"
                                          "all_reduce over rows, columns (4 devices): 2.3 KB in 2\n"), {"all_gather": 3, "all_reduce": 2})

    def test_tensors_are_equal_within_the_tolerances(self):
        self.assertEqual(tensors.compare([1.0, 2.0], [1.0, 2.0]), (0, True))
        self.assertTrue(tensors.compare([100.009], [100.0])[1])
        self.assertFalse(tensors.compare([100.02], [100.0])[1])
        self.assertFalse(tensors.compare([0.0, NAN], [0.0, 1.0])[1])
        self.assertFalse(tensors.compare([], [])[1])
        self.assertFalse(tensors.compare([1.0], [1.0, 2.0])[1])

    def test_tensors_are_read(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2f", 1.5, -2)
        self.assertEqual(list(tensors.read_npy(self.write("x.npy", npy))), [1.5, -2])
        with self.assertRaisesRegex(ValueError, "expected a .npy file of float32"):
            tensors.read_npy(self.write("y.npy", npy.replace(b"<f4", b"<i4")))
        header = b'{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}'
        path = self.write("x.safetensors", struct.pack("<Q", len(header)) + header + struct.pack("<qf", 7, 0.25))
        self.assertEqual(list(tensors.read_safetensors(path, "b")), [0.25])
        with self.assertRaisesRegex(ValueError, "a: expected F32, found I64"):
            tensors.read_safetensors(path, "a")

    def test_chart(self):
        self.assertEqual(chart.draw([4.0, 2.0, 0.0], [4.0, 0.0, 0.0], rows=3), ["  4.00 |*", "  2.00 | o", "  0.00 | x*"])
        self.assertEqual(chart.draw([1.0], [1.0], rows=2), ["  1.00 |*", "  0.00 |"])


if __name__ == "__main__":
    sys.exit(unittest.main())
