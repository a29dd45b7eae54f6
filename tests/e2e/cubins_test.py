"""partita compile embeds machine code for GPUs beside the PTX if NVIDIA's assembler is there; partita inspect lists it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2/model_eval.onnx")
os.environ.pop("PARTITA_PTXAS", None)  # tests set it
# The places where the compiler looks (compiler/kernels/assemble_ptx.h), without CUDA_PATH.
PTXAS = next((path for path in (os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/ptxas"), "/usr/local/cuda/bin/ptxas",
                                shutil.which("ptxas") or "") if os.access(path, os.X_OK)), None)


class CubinsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.artifact = os.path.join(self.folder.name, "model.partita")

    def run_partita(self, *arguments, code=0, **environment):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def compile(self, *options, target="cuda:sm_90a", code=0, **environment):
        return self.run_partita("compile", GPT2, "--dim", "batch=2", "--dim", "seq=8", "--target", target, "-o", self.artifact, *options,
                                code=code, **environment).stderr

    def pieces(self):
        facts = json.loads(self.run_partita("inspect", self.artifact, "--json").stdout)
        for piece in facts["code"]:
            self.assertGreater(piece["bytes"], 1000)
        return [piece["name"] for piece in facts["code"]]

    def machine_code(self):
        """What follows the first cubin's begin in a new artifact: no names of files or times."""
        self.compile()
        with open(self.artifact, "rb") as file:
            artifact = file.read()
        return artifact[artifact.index(b"\x7fELF"):]

    @unittest.skipUnless(PTXAS, "no ptxas: machine code is not embedded")
    def test_the_targets_code_is_embedded(self):
        first = self.machine_code()
        self.assertEqual(self.pieces(), ["ptx", "sm_90a"])
        self.assertEqual(self.machine_code(), first)
        self.assertRegex(self.run_partita("inspect", self.artifact).stdout, r"(?m)^code +ptx \(.*\), sm_90a \(.* KB\)$")

    @unittest.skipUnless(PTXAS, "no ptxas: machine code is not embedded")
    def test_lists_of_gpus(self):
        self.compile("--cubins", "sm_80,sm_90", target="cuda:sm_80")
        self.assertEqual(self.pieces(), ["ptx", "sm_80", "sm_90"])
        self.assertIn("--cubins: %s cannot assemble the kernels for sm_80: " % PTXAS, self.compile("--cubins", "sm_80", code=1))

    def test_ptx_alone(self):
        self.compile("--cubins", "none")
        self.assertEqual(self.pieces(), ["ptx"])

    def test_without_an_assembler(self):
        self.assertNotIn("warning", self.compile(PARTITA_PTXAS="none"))
        self.assertEqual(self.pieces(), ["ptx"])
        self.assertIn("--cubins: expected NVIDIA's assembler ptxas", self.compile("--cubins", "sm_90a", PARTITA_PTXAS="none", code=1))

    def test_an_assembler_that_fails_is_warned_of(self):
        fake = os.path.join(self.folder.name, "ptxas")
        with open(fake, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho too old >&2\nexit 1\n")
        os.chmod(fake, 0o755)
        warning = self.compile(PARTITA_PTXAS=fake)
        self.assertIn("warning", warning)
        self.assertIn("%s cannot assemble the kernels for sm_90a: too old" % fake, warning)
        self.assertEqual(self.pieces(), ["ptx"])

    def test_gpus_are_named_once(self):
        self.assertIn("--cubins: expected each GPU once, found sm_90a twice", self.compile("--cubins", "sm_90a,sm_90a", code=1))

    def test_cpus_have_none(self):
        self.assertIn("--cubins: expected a target with PTX", self.compile("--cubins", "sm_90", target="cpu", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main())
