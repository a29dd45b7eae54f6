"""A GPT of two layers learns text better from a teacher of four layers and its targets than from the targets alone.

The text is tests/data/devils-dictionary; --test_env=PARTITA_TEXT=FILE selects another one. The loss is the cross-entropy per byte on the last
tenth of the text, which nobody was trained on. distillation_curve.md has the curves.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, TEXT = sys.argv[1:4]
del sys.argv[1:4]
TEXT = os.environ.get("PARTITA_TEXT", TEXT)

CONFIG = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 256,
    "n_positions": 64,
    "n_embd": 128,
    "n_head": 4,
    "resid_pdrop": 0,
    "embd_pdrop": 0,
    "attn_pdrop": 0,
}
SIZES = "batch=16,seq=64"
TEACHER_STEPS, STUDENT_STEPS = 1200, 600
DISTILL = "temperature=2; kl=1; cross_entropy=0.5"
BETTER = 0.03  # nats
EVERY = 200  # steps between points of the curves


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(arguments), done.stdout, done.stderr))
    return done.stdout


class DistillationCurveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name, layers in (("teacher", 4), ("student", 2)):
            os.makedirs(cls.path(name))
            with open(cls.path(name, "config.json"), "w", encoding="utf-8") as file:
                json.dump(dict(CONFIG, n_layer=layers), file)

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    def train(self, model, name, steps, *options):
        """The run's checkpoints."""
        artifact, folder = self.path(name + ".partita"), self.path(name + "-run")
        run([COMPILER, "compile", self.path(model), "--dim", SIZES, "--train", "adamw", "--clip-norm", "1", "--weight-decay", "0.1", "--no-decay",
             "*.bias;*ln_*", *options, "-o", artifact])
        run([RUNNER, "train", artifact, "--data", "text:" + TEXT, "--data-range", "0:0.9", "--steps", str(steps), "--lr", "2e-3", "--schedule",
             "cosine", "--warmup", "50", "--checkpoint-dir", folder, "--checkpoint-every", str(EVERY), "--keep", "9", "--threads", "1", "--quiet"])
        return [os.path.join(folder, checkpoint) for checkpoint in sorted(os.listdir(folder)) if checkpoint.startswith("step-")]

    def loss(self, model, checkpoint):
        artifact = self.path("evaluate.partita")
        run([COMPILER, "compile", self.path(model), "--dim", SIZES, "--train", "sgd", "--weights", checkpoint, "-o", artifact])
        losses = json.loads(run([RUNNER, "train", artifact, "--data", "text:" + TEXT, "--data-range", "0.9:1", "--steps", "30", "--lr", "1e-30",
                                 "--no-shuffle", "--threads", "1", "--quiet", "--json"]))["losses"]
        return sum(losses) / len(losses)

    def curve(self, model, name, steps, *options):
        checkpoints = self.train(model, name, steps, *options)
        losses = [self.loss(model, checkpoint) for checkpoint in checkpoints]
        print("%-9s after each %d steps: %s" % (name, EVERY, " ".join("%.4f" % loss for loss in losses)), flush=True)
        return checkpoints[-1], losses

    def test_half_of_the_layers(self):
        checkpoint, taught = self.curve("teacher", "teacher", TEACHER_STEPS)
        _, alone = self.curve("student", "alone", STUDENT_STEPS)
        _, distilled = self.curve("student", "distilled", STUDENT_STEPS, "--teacher", self.path("teacher"), "--teacher-weights", checkpoint,
                                  "--distill", DISTILL)
        self.assertEqual(len(alone), STUDENT_STEPS // EVERY)
        self.assertLess(taught[-1], alone[-1])
        self.assertLess(distilled[-1], alone[-1] - BETTER)


if __name__ == "__main__":
    unittest.main()
