"""Plans, explanations, verifications, simulations and descriptions, from Python."""

import os
import tempfile
import unittest

from checkout import DATA

import partita

GPT2 = os.path.join(DATA, "gpt2", "model_eval.onnx")
DIMS = {"batch": 8, "seq": 16}
TENSOR = {"mesh": {"tensor": 2}, "shard": "M=tensor,N=tensor"}


class JudgeTest(unittest.TestCase):
    def test_a_plan_compiles_and_takes_the_planned_time(self):
        plan = partita.plan(GPT2, dims=DIMS, cluster="4x a100-80-sxm", train="adamw")
        self.assertGreater(plan.step_seconds, 0)
        self.assertGreater(plan.memory_bytes, 0)
        self.assertIn("mesh", plan.text)
        self.assertIn(plan.division, repr(plan))
        self.assertTrue(plan.why)
        step = partita.compile(GPT2, dims=DIMS, train="adamw", plan=plan, target="cuda:sm_80")
        found = partita.simulate(step, "4x a100-80-sxm")
        self.assertAlmostEqual(found.step_seconds / plan.step_seconds, 1, delta=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            path = plan.save(os.path.join(folder, "plan.yaml"))
            self.assertEqual(partita.inspect(path).kind, "plan")

    def test_an_explanation(self):
        costs = partita.explain(GPT2, dims=DIMS, cluster="2x a100-80-sxm", **TENSOR)
        reductions = [cost for cost in costs if cost.kind == "all_reduce"]
        self.assertEqual(len(costs.facts["collectives"]), len([cost for cost in costs if cost.kind != "padding"]))
        self.assertTrue(reductions)
        for cost in reductions:
            self.assertEqual(cost.group, 2)
            self.assertGreater(cost.bytes, 0)
            self.assertTrue(cost.reason)
        self.assertTrue(any("M" in cost.remedy for cost in reductions))
        self.assertEqual([cost.total_bytes for cost in costs], sorted((cost.total_bytes for cost in costs), reverse=True))
        self.assertGreater(costs.step_seconds, 0)
        self.assertIn("all_reduce", repr(costs))

    def test_a_verification(self):
        found = partita.verify(GPT2, **TENSOR)
        self.assertTrue(found)
        self.assertTrue(found.equal)
        self.assertGreater(found.compared, 50)
        self.assertLess(found.largest, found.tolerance)
        self.assertIn("equal", repr(found))

    def test_a_simulation(self):
        step = partita.compile(GPT2, dims=DIMS, train="adamw", microbatches=4, mesh={"pipe": 2}, shard="D=pipe", schedule="1f1b",
                               target="cuda:sm_80")
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            found = partita.simulate(step, "2x a100-80-sxm", trace=trace)
            self.assertGreater(os.path.getsize(trace), 100)
        self.assertEqual(found.devices, 2)
        self.assertGreater(found.bubble, 0)
        self.assertIn("<iframe", found._repr_html_())
        self.assertIn("bubble", repr(found))
        table = partita.timetable(step)
        self.assertEqual(table.facts["ranks"], 2)
        self.assertTrue(table._repr_svg_().startswith("<svg"))

    def test_descriptions(self):
        model = partita.inspect(GPT2, dims=DIMS)
        self.assertEqual((model.kind, model.inputs[0]["name"]), ("model", "input_ids"))
        self.assertIn("input_ids", repr(model))
        with self.assertRaisesRegex(AttributeError, "found absent"):
            model.absent  # pylint: disable=pointless-statement
        artifact = partita.inspect(partita.compile(GPT2, dims=DIMS))
        self.assertEqual((artifact.kind, artifact.devices), ("artifact", 1))

    def test_refusals(self):
        with self.assertRaisesRegex(partita.UsageError, "expected a plan to judge"):
            partita.explain(GPT2, dims=DIMS)
        with self.assertRaisesRegex(partita.CompileError, "nowhere"):
            partita.plan(GPT2, dims=DIMS, cluster="4x nowhere")
        with self.assertRaisesRegex(partita.CompileError, "expected at least 2 devices"):
            partita.explain(GPT2, dims=DIMS, cluster="1x a100-80-sxm", **TENSOR)


if __name__ == "__main__":
    unittest.main(verbosity=1)
