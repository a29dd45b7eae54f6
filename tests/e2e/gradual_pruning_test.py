"""Gradual pruning: plain Python chooses the same elements in each step, whatever the plan, and resumed runs compute the same bits."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
LLAMA = "tests/data/lora-tiny/llama"
WEIGHTS = "*_proj.weight;!*layers.1.mlp.up_proj*"
STEPS = 7
FIRST, LAST, BEGIN, END, EVERY = 0.1, 0.7, 2, 6, 2
SCHEDULE = ("--prune-schedule", f"{BEGIN}:{END}:{EVERY}", "--prune-sparsity", f"{FIRST}:{LAST}", "--prune-weights", WEIGHTS)


def is_pruned(name):
    return name.endswith("_proj.weight") and "layers.1.mlp.up_proj" not in name


def read_folder(folder):
    """{name: tuple of f32} of the weights of a checkpoint."""
    tensors = {}
    for file in sorted(os.listdir(folder)):
        if not (file.startswith("model") and file.endswith(".safetensors")):
            continue
        with open(os.path.join(folder, file), "rb") as opened:
            data = opened.read()
        (size,) = struct.unpack("<Q", data[:8])
        for name, entry in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + offset for offset in entry["data_offsets"])
                tensors[name] = struct.unpack("<%df" % ((end - begin) // 4), data[begin:end])
    return tensors


def smallest(values, share):
    """The positions of the elements of smallest magnitude; of equal ones, the first."""
    return set(sorted(range(len(values)), key=lambda i: (abs(values[i]), i))[:round(share * len(values))])


def pruned(weights, step, is_global):
    """The weights after the pruning of this step."""
    if not (BEGIN <= step <= END and (step - BEGIN) % EVERY == 0):
        return weights
    share = LAST + (FIRST - LAST) * (1 - (step - BEGIN) / (END - BEGIN))**3
    names = [name for name in weights if is_pruned(name)]
    # Ties between weights would need the program's order of weights; there are none but zeros, which all go.
    together = [(name, i, x) for name in names for i, x in enumerate(weights[name])]
    chosen = {together[i][:2] for i in smallest([x for _, _, x in together], share)} if is_global else \
             {(name, i) for name in names for i in smallest(weights[name], share)}
    return {name: tuple(0.0 if (name, i) in chosen else x for i, x in enumerate(values)) for name, values in weights.items()}


class GradualPruningTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(200) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *command, code=0):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def compile(self, name, *options):
        self.run_command(PARTITA, "compile", LLAMA, "--dim", "batch=2,seq=8", "--train", "adamw", *options, "-o", self.path(name))

    def train(self, model, folder, steps, *options, code=0):
        return self.run_command(PARTITA_RUN, "train", self.path(model), "--data", self.path("tokens.bin"), "--steps", str(steps), "--lr", "0.01",
                                "--checkpoint-dir", self.path(folder), "--checkpoint-every", "1", "--keep", "99", "--quiet", *options, code=code)

    def weights(self, folder, step):
        return read_folder(self.path(f"{folder}/step-{step:08d}"))

    def check_each_step(self, model, folder, is_global=False):
        """Each step equals a step without pruning from the checkpoint before, and pruning by plain Python."""
        for step in range(1, STEPS + 1):
            alone = f"{folder}-{step}"
            os.makedirs(self.path(alone))
            if step > 1:
                os.symlink(self.path(f"{folder}/step-{step - 1:08d}"), self.path(f"{alone}/step-{step - 1:08d}"))
            self.train(model, alone, step, "--resume")
            expected, found = pruned(self.weights(alone, step), step, is_global), self.weights(folder, step)
            for name, values in expected.items():
                self.assertEqual(values, found[name], f"{name} after step {step}")

    def zeros(self, folder, step):
        return {name: [x == 0 for x in values] for name, values in self.weights(folder, step).items() if is_pruned(name)}

    def test_each_step_and_resumed_runs(self):
        self.compile("t.partita", "--keep-zeros", WEIGHTS)
        self.train("t.partita", "whole", STEPS, *SCHEDULE)
        self.check_each_step("t.partita", "whole")
        for name, zeros in self.zeros("whole", STEPS).items():
            self.assertEqual(sum(zeros), round(LAST * len(zeros)), name)
        for stop in (2, 3):
            self.train("t.partita", f"parts-{stop}", stop, *SCHEDULE)
            self.train("t.partita", f"parts-{stop}", STEPS, *SCHEDULE, "--resume")
            self.assertEqual(self.weights(f"parts-{stop}", STEPS), self.weights("whole", STEPS))

        # Divided, each step prunes as plain Python does, and the masks equal one device's masks.
        self.compile("d.partita", "--keep-zeros", WEIGHTS, "--mesh", "d=2,t=2", "--shard", "B=d;M=t,N=t", "--zero", "1")
        self.train("d.partita", "divided", STEPS, *SCHEDULE)
        self.check_each_step("d.partita", "divided")
        one, four = self.weights("whole", STEPS), self.weights("divided", STEPS)
        self.assertEqual(self.zeros("whole", STEPS), self.zeros("divided", STEPS))
        for name, values in one.items():
            for x, y in zip(values, four[name]):
                self.assertAlmostEqual(x, y, delta=1e-4, msg=name)

    def test_all_weights_together(self):
        self.compile("t.partita", "--keep-zeros", WEIGHTS)
        self.train("t.partita", "whole", STEPS, *SCHEDULE, "--prune-global")
        self.check_each_step("t.partita", "whole", is_global=True)
        zeros = self.zeros("whole", STEPS)
        total = sum(len(each) for each in zeros.values())
        self.assertEqual(sum(sum(each) for each in zeros.values()), round(LAST * total))
        self.assertGreater(len({round(sum(each) / len(each), 2) for each in zeros.values()}), 1)

    def test_before_the_first_step(self):
        self.compile("t.partita", "--keep-zeros", WEIGHTS)
        self.train("t.partita", "once", 1, "--prune-schedule", "0:0:1", "--prune-sparsity", "0.5", "--prune-weights", WEIGHTS)
        start = read_folder(LLAMA)
        for name, zeros in self.zeros("once", 1).items():
            self.assertEqual({i for i, zero in enumerate(zeros) if zero}, smallest(start[name], 0.5), name)

    def test_refusals(self):
        self.compile("free.partita")
        steps, share, weights = SCHEDULE[:2], SCHEDULE[2:4], SCHEDULE[4:]
        for number, (code, expected, options) in enumerate((
                (1, "step 3: expected the 26 zeros of 'model.layers.0.", SCHEDULE),
                (1, "compile the model with --keep-zeros", SCHEDULE),
                (1, "--prune-weights: expected 'x*' to match a matrix that is trained, found none; one is '", (*steps, *share, "--prune-weights", "*;x*")),
                (1, "--prune-weights: expected '*norm*' to match", (*steps, *share, "--prune-weights", "*norm*")),
                (1, "expected a pattern that matches a matrix, found none in '!*q*'", (*steps, *share, "--prune-weights", "!*q*")),
                (2, "found no --prune-weights", (*steps, *share)),
                (2, "found no --prune-sparsity", (*steps, *weights)),
                (2, "found no --prune-schedule", ("--prune-global",)),
                (2, "expected three numbers of steps BEGIN:END:EVERY", ("--prune-schedule", "3", *share, *weights)),
                (2, "expected an interval that divides the 5 steps", ("--prune-schedule", "1:6:2", *share, *weights)),
                (2, "at or behind the first, found 6 and 1", ("--prune-schedule", "6:1:1", *share, *weights)),
                (2, "expected two shares of zeros from 0 to 1, the smaller first", (*steps, "--prune-sparsity", "0.5:0.4", *weights)),
                (2, "expected a share of zeros above 0 and up to 1", (*steps, "--prune-sparsity", "1.5", *weights)),
        )):
            with self.subTest(expected=expected):
                self.assertIn(expected, self.train("free.partita", f"refused-{number}", STEPS, *options, code=code))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
