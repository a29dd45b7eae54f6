"""A small V-MoE learns Fashion-MNIST, on one device and with its experts divided over two; both classify the test images.

The router's choices are the same on two devices until rounding differs, so the losses of the first steps are equal, and later ones near.
"""

import array
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, FETCH = sys.argv[1:4]
del sys.argv[1:4]

# Experts in every second layer. Rows of 8 images compete for their experts.
CONFIG = {
    "model_type": "vmoe", "image_size": 28, "patch_size": 4, "num_channels": 1, "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 128, "num_labels": 10, "expert_layers": [1, 3], "num_experts": 8,
    "num_experts_per_tok": 2, "capacity_factor": 1.25, "images_per_group": 8
}
SIDE = 28
BATCH, STEPS, EQUAL_STEPS = 64, 800, 20
MEAN, DEVIATION = 0.286, 0.353
PIXELS = ["--pixel-mean", str(MEAN), "--pixel-deviation", str(DEVIATION)]
SHOWN = 1000  # images per run
ACCURACY = 0.78


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(arguments), done.stdout, done.stderr))
    return done.stdout


def home():
    """The user's home directory, which contains the data cache; Bazel hides HOME."""
    import pwd
    return dict(os.environ, HOME=pwd.getpwuid(os.getuid()).pw_dir)


def read_idx(path):
    """The bytes of an IDX file after its header."""
    with open(path, "rb") as file:
        content = file.read()
    return content[4 + 4 * content[3]:]


def write_images(path, images):
    value = [(byte / 255 - MEAN) / DEVIATION for byte in range(256)]
    pixels = array.array("f", (value[byte] for byte in images))
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, %d, %d), }" % (len(images) // SIDE**2, SIDE, SIDE)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + pixels.tobytes())


def read_floats(path):
    with open(path, "rb") as file:
        content = file.read()
    return array.array("f", content[10 + struct.unpack("<H", content[8:10])[0]:])


def mean(values):
    return sum(values) / len(values)


class VmoeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = subprocess.run(["bash", FETCH], check=True, capture_output=True, text=True, env=home()).stdout.strip()
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, name, division):
        """Returns the losses of all steps."""
        run([COMPILER, "compile", self.folder, "--dim", "batch=%d" % BATCH, "--train", "adamw", "--weight-decay", "0.05",
             "--no-decay", "*.bias;*norm*", "--clip-norm", "1", "-o", self.path(name + ".partita")] + division)
        run([RUNNER, "train", self.path(name + ".partita"), "--data", os.path.join(self.data, "train-images-idx3-ubyte"),
             "--steps", str(STEPS), "--lr", "2e-3", "--schedule", "cosine", "--warmup", "100", "--checkpoint-dir",
             self.path(name), "--log", self.path(name + ".jsonl"), "--quiet"] + PIXELS)
        with open(self.path(name + ".jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line) for line in file]
        losses = [step["loss"] for step in steps]
        print("%s: loss %.3f, at last %.3f; median step %.3f s" % (name, losses[0], mean(losses[-100:]),
                                                                  sorted(s["seconds"] for s in steps)[STEPS // 2]), flush=True)
        # The curve falls, in four parts.
        parts = [mean(losses[i * STEPS // 4:(i + 1) * STEPS // 4]) for i in range(4)]
        self.assertEqual(parts, sorted(parts, reverse=True))
        return losses

    def accuracy(self, name):
        run([COMPILER, "compile", self.folder, "--weights", self.path("%s/step-%08d" % (name, STEPS)), "--dim",
             "batch=%d" % SHOWN, "-o", self.path("infer.partita")])
        images = read_idx(os.path.join(self.data, "t10k-images-idx3-ubyte"))
        labels = read_idx(os.path.join(self.data, "t10k-labels-idx1-ubyte"))
        found = []
        for at in range(0, len(images), SHOWN * SIDE**2):
            write_images(self.path("x.npy"), images[at:at + SHOWN * SIDE**2])
            run([RUNNER, self.path("infer.partita"), "--input", "pixel_values=" + self.path("x.npy"), "--output-dir",
                 self.path("out")])
            logits = read_floats(self.path("out/y.npy"))
            rows = [logits[i:i + 10] for i in range(0, len(logits), 10)]
            found += [max(range(10), key=row.__getitem__) for row in rows]
        self.assertEqual(len(found), 10000)
        share = mean([a == b for a, b in zip(found, labels)])
        print("%s: accuracy on the test images %.2f %%" % (name, 100 * share), flush=True)
        return share

    def test_learns(self):
        whole = self.train("whole", [])
        divided = self.train("divided", ["--mesh", "x=2", "--shard", "X=x"])
        for step, (a, b) in enumerate(zip(whole[:EQUAL_STEPS], divided)):
            self.assertAlmostEqual(a, b, delta=1e-4 * a, msg="step %d" % (step + 1))
        self.assertAlmostEqual(mean(whole[-100:]), mean(divided[-100:]), delta=0.05)
        for name in ("whole", "divided"):
            self.assertGreater(self.accuracy(name), ACCURACY)


if __name__ == "__main__":
    unittest.main()
