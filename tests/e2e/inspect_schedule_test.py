"""partita inspect --schedule draws the pipeline of a plan: as text, as SVG, and as rows for programs."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2")
PLAN = "mesh: {pipe: 4, data: 2}\nshard: [{D: pipe, B: data}]\n"


class InspectScheduleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def inspect(self, plan, *options, code=0):
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write(plan)
        done = subprocess.run([PARTITA, "inspect", "plan.yaml", "--schedule", *options], capture_output=True, text=True, check=False,
                              cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def facts(self, schedule, *options):
        return json.loads(self.inspect(PLAN + "microbatches: 8\nschedule: %s\n" % schedule, "--json", *options))

    def test_text(self):
        text = self.inspect(PLAN + "microbatches: 4\n")
        self.assertIn("4 ranks, 4 stages, 4 microbatches, a step takes 21, bubble 42.9%", text)
        self.assertIn("rank 0: bubble 42.9%, in flight at most 4 on stage 0", text)
        self.assertIn("rank 3: bubble 42.9%, in flight at most 1 on stage 3", text)

    def test_bubbles_are_the_formulas(self):
        # S = 4 ranks and m = 8 microbatches; a forward, an input gradient and a weight gradient take the same time.
        for schedule, bubble in (("gpipe", 3 / 11), ("1f1b", 3 / 11), ("interleaved(2)", 3 / 19), ("zb-h1", 3 / 27), ("zb-v", 0)):
            facts = self.facts(schedule)
            self.assertAlmostEqual(facts["bubble"], bubble, delta=0.06 if schedule == "zb-v" else 1e-9, msg=schedule)
            self.assertEqual((facts["ranks"], facts["microbatches"]), (4, 8))
        self.assertEqual(self.facts("1f1b")["in_flight"], [4, 3, 2, 1])
        self.assertEqual(self.facts("gpipe")["in_flight"], [8] * 4)

    def test_without_a_flush_a_run_is_drawn(self):
        self.assertIn("no flush between steps: the first 14 steps of a run, 8 microbatches each\n",
                      self.inspect(PLAN + "microbatches: 8\nschedule: async-2bw\n"))
        self.assertEqual((self.facts("async")["steps_drawn"], self.facts("1f1b")["steps_drawn"]), (14, 1))

    def test_costs(self):
        # Expected: (S - 1)(F + B) of idle time beside m(F + B) of work.
        facts = self.facts("gpipe", "--costs", "F=2.5,B=4")
        self.assertAlmostEqual(facts["step"], 11 * 6.5)
        self.assertAlmostEqual(self.facts("gpipe", "--costs", "F=1,B=2,T=0.5")["step"], 11 * 3 + 3 * 2 * 0.5)
        self.assertIn("expected times of at least 0 for F, B, I, W and T", self.inspect(PLAN, "--costs", "F=1,X=2", code=2))
        self.assertIn("found 'B=-1'", self.inspect(PLAN, "--costs", "B=-1", code=2))

    def test_rows_are_a_table_that_draws_the_same(self):
        facts = self.facts("zb-v")
        with open(self.path("own.csv"), "w", encoding="utf-8") as file:
            file.write("\n".join(facts["rows"]))
        self.assertEqual(self.facts("own.csv"), facts)

    def test_svg(self):
        self.assertEqual(self.inspect(PLAN, "-o", "s.svg"), "")
        root = xml.etree.ElementTree.parse(self.path("s.svg")).getroot()
        self.assertEqual(len([group for group in root.iter() if group.get("class") == "cell"]), 8)
        self.assertIn("no/such", self.inspect(PLAN, "-o", "no/such/s.svg", code=1))

    def compile(self, *options):
        subprocess.run([PARTITA, "compile", GPT2, "--dim", "batch=8,seq=4", "--train", "adamw", "-o", self.path("m.partita"), *options],
                       capture_output=True, check=True)
        return subprocess.run([PARTITA, "inspect", self.path("m.partita"), "--schedule", "--json"], capture_output=True, text=True,
                              check=False)

    def test_artifact(self):
        done = self.compile("--microbatches", "4", "--mesh", "pipe=2", "--shard", "D=pipe", "--schedule", "zb-h1")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = "mesh: {pipe: 2}\nshard: [{D: pipe}]\nmicrobatches: 4\nschedule: zb-h1\n"
        self.assertEqual(json.loads(done.stdout), json.loads(self.inspect(plan, "--json")))
        done = self.compile()
        self.assertEqual(done.returncode, 1)
        self.assertIn("--schedule: expected the program of a pipeline, found one whose devices all run the same", done.stderr)

    def test_refusals(self):
        self.assertIn("plan.yaml:2:8: shard: expected devices along D", self.inspect("mesh: {d: 2}\nshard: [{B: d}]\n", code=1))
        self.assertIn("plan.yaml:3:11: schedule: expected a row for each of the 4 devices along D, found 1 in 'own.csv'",
                      self.refused_table("F0.0,B0.0"))
        self.assertIn("plan.yaml:3:11: schedule: 'own.csv': rank 0, cell 1 (B0.0): expected what it needs before it",
                      self.refused_table("B0.0,F0.0\nF1.0,B1.0\nF2.0,B2.0\nF3.0,B3.0"))
        done = subprocess.run([PARTITA, "inspect", "gpt2", "--schedule"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--schedule: expected a plan (.yaml) or an artifact (.partita)", done.stderr)

    def refused_table(self, rows):
        with open(self.path("own.csv"), "w", encoding="utf-8") as file:
            file.write(rows)
        return self.inspect(PLAN + "schedule: own.csv\n", code=1)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
