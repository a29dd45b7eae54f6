"""partita annotate -o specs.json and specs.py: the shardings that JAX's programs have, and those of a plan."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
PROGRAMS = os.path.abspath("tests/data/jax-tiny")


class PartitionSpecsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def annotate(self, program, ending, *options):
        path = os.path.join(self.folder, "specs" + ending)
        done = subprocess.run([PARTITA, "annotate", os.path.join(PROGRAMS, program + ".mlirbc"), "-o", path, *options], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path, encoding="utf8") as file:
            return file.read(), done.stdout

    def test_a_programs_own_shardings(self):
        content = json.loads(self.annotate("gpt_2x2", ".json")[0])
        self.assertEqual(content["mesh"], [{"name": "data", "size": 2}, {"name": "tensor", "size": 2}])
        specs = {argument["name"]: argument["spec"] for argument in content["arguments"]}
        # As tests/peers/make_jax.py says.
        self.assertEqual(specs["p.wte"], [["tensor"], None])
        self.assertEqual(specs["p.wpe"], [None, None])
        self.assertEqual(specs["ids"], [["data"], None])
        self.assertEqual(content["results"][0]["spec"][0], ["data"])

    def test_a_plan_in_python(self):
        text, output = self.annotate("gpt_step", ".py", "--mesh", "data=2,tensor=2", "--shard", "B=data;M=tensor", "--ignore-shardings")
        self.assertIn("PartitionSpecs; arguments: 81", output)
        sharding = types.ModuleType("jax.sharding")
        sharding.PartitionSpec = lambda *axes: axes
        modules = {"jax": types.ModuleType("jax"), "jax.sharding": sharding}
        sys.modules.update(modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in modules])
        values = {}
        exec(compile(text, "specs.py", "exec"), values)  # pylint: disable=exec-used
        self.assertEqual(values["MESH"], {"data": 2, "tensor": 2})
        arguments = values["ARGUMENTS"]
        self.assertEqual(arguments["ids"], ("data",))
        divided = {name for name, spec in arguments.items() if "tensor" in spec}
        # The widths of both layers' MLPs, and their states.
        self.assertEqual(len(divided), 2 * 3 * 3, divided)
        self.assertTrue(all("mlp" in name or "up" in name or "down" in name for name in divided), divided)

    def test_sizes_that_do_not_divide(self):
        content = json.loads(self.annotate("gpt", ".json", "--mesh", "d=3", "--shard", "V=d")[0])
        uneven = [argument["name"] for argument in content["arguments"] if argument["is_uneven"]]
        self.assertEqual(uneven, ["p.wte"])

    def test_refusals(self):
        done = subprocess.run([PARTITA, "annotate", os.path.join(PROGRAMS, "gpt.mlirbc"), "-o", os.path.join(self.folder, "specs.json")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected a plan to write down", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
