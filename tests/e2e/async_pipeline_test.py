"""Compiles and runs schedules without a flush. Their losses must be those of the stale weights in their definitions.

On one batch with plain SGD, PipeDream-2BW computes steps 0 and 1 with the initial weights and step 2 with the weights after one
update. The loss of step 2 is therefore the undivided model's second loss. The effect of an update shows in the next step.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
RUNNER = "runtime/tools/partita-run"
MODEL = "tests/data/onnx-tiny/gpt2_4l"
SIZES = ["--dim", "batch=8,seq=12"]


class AsyncPipelineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def losses(self, *plan, steps=6, rate="0.1", options=()):
        """Losses of that many steps on one batch."""
        artifact = os.path.join(self.folder, "m.partita")
        subprocess.run([PARTITA, "compile", MODEL, *SIZES, "--train", "sgd", "-o", artifact, *plan], check=True,
                       stdout=subprocess.DEVNULL)
        run = subprocess.run([RUNNER, "train", artifact, "--input", "input_ids=arange", "--input", "targets=ones", "--lr", rate,
                              "--steps", str(steps), "--quiet", "--json", *options], check=True, stdout=subprocess.PIPE)
        return json.loads(run.stdout)["losses"]

    @staticmethod
    def pipeline(schedule, microbatches, devices=2):
        return ["--mesh", f"pipe={devices}", "--shard", "D=pipe", "--microbatches", str(microbatches), "--schedule", schedule]

    def assert_close(self, found, expected):
        self.assertLess(abs(found - expected), 1e-5 * abs(expected), (found, expected))

    def test_2bw_is_one_update_behind(self):
        whole = self.losses(steps=2)
        for microbatches in (1, 2, 4, 8):
            with self.subTest(microbatches=microbatches):
                stale = self.losses(*self.pipeline("async-2bw", microbatches))
                self.assertIsNone(stale[0])
                self.assert_close(stale[1], whole[0])
                self.assert_close(stale[2], whole[0])
                self.assert_close(stale[3], whole[1])

    def test_2bw_is_the_same_on_more_stages(self):
        two = self.losses(*self.pipeline("async-2bw", 4))
        four = self.losses(*self.pipeline("async-2bw", 4, devices=4))
        for a, b in zip(two, four):
            self.assert_close(a, b) if b is not None else self.assertIsNone(a)

    def test_losses_of_many_stages_and_few_microbatches_are_told_later(self):
        whole = self.losses(steps=1)
        for microbatches, late in ((1, 3), (2, 2), (4, 1)):
            with self.subTest(microbatches=microbatches):
                found = self.losses(*self.pipeline("async", microbatches, devices=4))
                self.assertEqual(found[:late], [None] * late)
                self.assert_close(found[late], whole[0])

    def test_zero_divides_them_too(self):
        for schedule in ("async-2bw", "async"):
            alone = self.losses(*self.pipeline(schedule, 4))
            for zero in range(1, 4):
                with self.subTest(schedule=schedule, zero=zero):
                    divided = self.losses("--mesh", "pipe=2,data=2", "--shard", "D=pipe;B=data", "--microbatches", "4",
                                          "--schedule", schedule, "--zero", str(zero))
                    for a, b in zip(alone, divided):
                        self.assert_close(a, b) if b is not None else self.assertIsNone(a)

    def test_newest_weights_are_newer(self):
        whole = self.losses(steps=3)
        newest = self.losses(*self.pipeline("async", 4))
        self.assertIsNone(newest[0])
        self.assert_close(newest[1], whole[0])
        # Between the loss without the first update and the loss with the whole update.
        self.assertLess(newest[2], whole[0])
        self.assertGreater(newest[2], whole[1])

    def rows(self, schedule, microbatches):
        """The schedule's table for two devices."""
        plan = os.path.join(self.folder, "plan.yaml")
        with open(plan, "w", encoding="utf-8") as file:
            file.write(f"mesh: {{pipe: 2}}\nshard: [{{D: pipe}}]\nmicrobatches: {microbatches}\nschedule: {schedule}\n")
        shown = subprocess.run([PARTITA, "inspect", plan, "--schedule", "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(shown.stdout)["rows"]

    def table(self, rows):
        path = os.path.join(self.folder, "own.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(rows))
        return path

    def test_tables_of_ones_own(self):
        for schedule in ("async", "async-2bw"):
            rows = self.rows(schedule, 4)
            expected = self.losses(*self.pipeline(schedule, 4))
            # Split backwards, and swap the stages of the two devices.
            halves = [re.sub(r"B([^,]*)", r"I\1,W\1", row) for row in rows]
            for own in (rows, halves, rows[::-1], halves[::-1]):
                with self.subTest(schedule=schedule, rows=own):
                    found = self.losses(*self.pipeline(self.table(own), 4))
                    self.assertIsNone(found[0])
                    for a, b in zip(found[1:], expected[1:]):
                        self.assert_close(a, b)

    def test_other_steps_are_refused(self):
        # A valid table, but the first stage is further ahead than the number of stages after it.
        far = self.table(["F0.0@-1,F0.1@-1,|,F0.2,B0.0@-1,F0.3,B0.1@-1", "|,F1.0@-1,B1.0@-1,F1.1@-1,B1.1@-1"])
        done = subprocess.run([PARTITA, "compile", MODEL, *SIZES, "--train", "sgd", "-o", os.path.join(self.folder, "m.partita"),
                               *self.pipeline(far, 2)], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--schedule: without a flush expected a stage to be as many microbatches ahead of its gradients as there are stages "
                      "behind it, here stage 0 to compute forwards of 1 to 2 and gradients of 0 to 1, found F0.3 in the period",
                      done.stderr)

    def test_corrected_weights_are_near_those_of_the_forward(self):
        plan = self.pipeline("async", 2, devices=4)
        kept = self.losses(*plan, steps=8, rate="0.02")
        corrected = self.losses(*plan, "--pipemare-correction", "0.1", steps=8, rate="0.02")
        newest = self.losses(*plan, "--pipemare-correction", "1e-30", steps=8, rate="0.02")
        # Losses are equal until the weights differ.
        self.assertEqual(kept[:3], corrected[:3])
        self.assertNotEqual(kept[-1], corrected[-1])
        self.assertNotEqual(newest[-1], corrected[-1])
        self.assertLess(abs(corrected[-1] - kept[-1]), 0.05 * (kept[2] - kept[-1]))

    def test_what_needs_all_gradients_is_refused(self):
        for options, microbatches, said in (
                (["--precision", "f16"], 2, "--precision f16: expected a schedule that waits for the end of a step"),
                (["--clip-norm", "1"], 2, "--clip-norm: expected a schedule other than async with several microbatches"),
                (["--pipemare-correction", "1"], 2, "--pipemare-correction: expected a number from 0 to below 1"),
                (["--pipemare", "9"], 2, "found async with 2 microbatches and 2 stages")):
            with self.subTest(options=options):
                done = subprocess.run([PARTITA, "compile", MODEL, *SIZES, "--train", "sgd", "-o",
                                       os.path.join(self.folder, "m.partita"), *self.pipeline("async", microbatches), *options],
                                      stderr=subprocess.PIPE, text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertNotIn("bug of ours", done.stderr)
                self.assertIn(said, done.stderr)

    def test_pipemare_slows_stages_of_old_weights(self):
        plan = self.pipeline("async", 1, devices=4)
        slow = self.losses(*plan, "--pipemare", "1000000000000", steps=9, rate="0.02")
        # The stages' weights are 3, 2, 1 and 0 updates old.
        by_hand = self.losses(*plan, "--lr-scale", "*=0.3333333;*h.1.*=0.5;*h.2.*=1;*h.3.*=1;*ln_f*=1", steps=9, rate="0.02")
        for a, b in zip(slow, by_hand):
            self.assert_close(a, b) if b is not None else self.assertIsNone(a)
        soon = self.losses(*plan, "--pipemare", "3", steps=9, rate="0.02")
        fast = self.losses(*plan, steps=9, rate="0.02")
        self.assertLess(fast[-1], soon[-1])
        self.assertLess(soon[-1], slow[-1])

    def test_pipemare_wants_old_weights(self):
        for plan, expected in ((["--microbatches", "4"], "wait for all updates"),
                               (self.pipeline("1f1b", 4), "wait for all updates"),
                               (self.pipeline("async-2bw", 4), "found another schedule with 4 microbatches and 2 stages"),
                               (self.pipeline("async", 4, devices=4), "found async with 4 microbatches and 4 stages")):
            with self.subTest(plan=plan):
                run = subprocess.run([PARTITA, "compile", MODEL, *SIZES, "--train", "sgd", "--pipemare", "10", "-o",
                                      os.path.join(self.folder, "m.partita"), *plan], stderr=subprocess.PIPE, text=True)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn("--pipemare: expected", run.stderr)
                self.assertIn(expected, run.stderr)

    def test_what_is_under_way_is_in_checkpoints(self):
        plan = self.pipeline("async-2bw", 2)
        at_once = self.losses(*plan)
        saved = ["--checkpoint-dir", os.path.join(self.folder, "saved"), "--checkpoint-every", "3"]
        first = self.losses(*plan, steps=3, options=saved)
        then = self.losses(*plan, steps=6, options=saved + ["--resume"])
        self.assertEqual(first + then, at_once)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
