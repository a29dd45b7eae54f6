"""A small CoAtNet that has learnt Fashion-MNIST is trained on for integers of 8 bits, and with half of its weights pruned: little accuracy is lost.

Three models continue from the same float model with the same steps: in floats, with --fake-quantize, and pruned to 2:4 with --keep-zeros.
The second is then quantized with the ranges that its training recorded.
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

CONFIG = {
    "architecture": "CoAtNet as in timm's MaxxVit",
    "num_classes": 10,
    "in_chans": 1,
    "img_size": 32,
    "stem_width": [16, 16],
    "embed_dim": [16, 32, 48, 64],
    "depths": [1, 2, 2, 1],
    "strides": [1, 2, 2, 1],
    "block_type": ["C", "C", "T", "T"],
    "conv": {
        "block": "mbconv", "expand_ratio": 4.0, "kernel_size": 3, "pre_norm_act": True, "stride": "avg-pool 2x2",
        "se": "early, ratio 0.25, relu", "act": "silu", "norm": "batchnorm", "norm_eps": 1e-05
    },
    "transformer": {
        "head_first": True, "expand_ratio": 4.0, "shortcut_bias": False, "attn_bias": True, "rel_pos": "bias table",
        "pool": "avg 2x2", "act": "gelu (erf)", "norm": "layernorm2d / layernorm", "norm_eps": 1e-06, "dim_head": 16
    },
}
SIDE, FOUND_SIDE = 32, 28
BATCH, STEPS, MORE_STEPS = 64, 1200, 400
MEAN, DEVIATION = 0.286, 0.353
PIXELS = ["--pixel-mean", str(MEAN), "--pixel-deviation", str(DEVIATION)]
SHOWN = 1000  # images per run
ACCURACY, MOST_LOST = 0.86, 0.005
FAKE = ["--fake-quantize", "bits=8"]


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
    """Images as in training: padded with zero bytes, then normalised."""
    value = [(byte / 255 - MEAN) / DEVIATION for byte in range(256)]
    edge = (SIDE - FOUND_SIDE) // 2
    row, side = [value[0]] * edge, [value[0]] * (SIDE * edge)
    pixels = array.array("f")
    size = FOUND_SIDE * FOUND_SIDE
    for begin in range(0, len(images), size):
        pixels.extend(side)
        for at in range(begin, begin + size, FOUND_SIDE):
            pixels.extend(row + [value[byte] for byte in images[at:at + FOUND_SIDE]] + row)
        pixels.extend(side)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, %d, %d), }" % (len(images) // size, SIDE, SIDE)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + pixels.tobytes())


def read_floats(path):
    with open(path, "rb") as file:
        content = file.read()
    return array.array("f", content[10 + struct.unpack("<H", content[8:10])[0]:])


class QuantizedImagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = subprocess.run(["bash", FETCH], check=True, capture_output=True, text=True, env=home()).stdout.strip()
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)
        images = read_idx(os.path.join(self.data, "t10k-images-idx3-ubyte"))
        self.labels = read_idx(os.path.join(self.data, "t10k-labels-idx1-ubyte"))
        self.assertEqual(len(self.labels), 10000)
        size = SHOWN * FOUND_SIDE * FOUND_SIDE
        for i, at in enumerate(range(0, len(images), size)):
            write_images(self.path("x%d.npy" % i), images[at:at + size])

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, name, steps, rate, options):
        """Returns the folder of the last checkpoint."""
        run([COMPILER, "compile", self.folder, "--dim", "batch=%d" % BATCH, "--train", "adamw", "--weight-decay", "0.05", "--no-decay",
             "*.bias;*norm*", "--clip-norm", "1", "-o", self.path("train.partita")] + options)
        run([RUNNER, "train", self.path("train.partita"), "--data", os.path.join(self.data, "train-images-idx3-ubyte"), "--steps", str(steps),
             "--lr", rate, "--schedule", "cosine", "--warmup", "20", "--checkpoint-dir", self.path(name), "--log", self.path("log.jsonl"),
             "--quiet"] + PIXELS)
        with open(self.path("log.jsonl"), encoding="utf-8") as file:
            log = [json.loads(line) for line in file]
        print("%s: loss %.3f, at last %.3f; median step %.3f s" % (name, log[0]["loss"], sum(step["loss"] for step in log[-50:]) / 50,
                                                                  sorted(step["seconds"] for step in log)[steps // 2]), flush=True)
        return self.path("%s/step-%08d" % (name, steps))

    def accuracy(self, name, options):
        """The share of test images whose class is found; and all logits."""
        run([COMPILER, "compile", "-o", self.path("infer.partita")] + options)
        logits = []
        for i in range(len(self.labels) // SHOWN):
            run([RUNNER, self.path("infer.partita"), "--input", "x=" + self.path("x%d.npy" % i), "--output-dir", self.path("out")])
            logits.extend(read_floats(self.path("out/y.npy")))
        rows = [logits[at:at + 10] for at in range(0, len(logits), 10)]
        right = sum(max(range(10), key=row.__getitem__) == label for row, label in zip(rows, self.labels))
        share = right / len(self.labels)
        print("%s: accuracy on the test images %.2f %%" % (name, 100 * share), flush=True)
        return share, rows

    def test_accuracy(self):
        infer = [self.folder, "--dim", "batch=%d" % SHOWN]
        start = self.train("float", STEPS, "3e-3", [])
        more = ["--weights", start]
        floats, _ = self.accuracy("floats", infer + ["--weights", self.train("floats", MORE_STEPS, "1e-3", more)])
        self.assertGreater(floats, ACCURACY)

        trained = infer + ["--weights", self.train("simulated", MORE_STEPS, "1e-3", more + FAKE)] + FAKE
        simulated, expected = self.accuracy("simulated integers", trained)
        report = json.loads(run([COMPILER, "quantize", "-o", self.path("q"), "--json"] + trained))
        rounded = [layer for layer in report["layers"] if "input_low" in layer]
        self.assertGreater(len(rounded), 15)
        integers, found = self.accuracy("integers", [self.path("q")])
        self.assertGreater(integers, floats - MOST_LOST)
        self.assertAlmostEqual(integers, simulated, delta=0.001)
        # Sums in another order round some activations to the next integer.
        largest = max(abs(x) for row in expected for x in row)
        far = sum(abs(x - y) > 0.02 * largest for a, b in zip(expected, found) for x, y in zip(a, b))
        self.assertLess(far, 0.01 * 10 * len(found))

        report = json.loads(run([COMPILER, "prune", self.folder, "--weights", start, "--pattern", "2:4", "-o", self.path("pruned"), "--json"]))
        self.assertGreater(len(report["pruned"]), 15)
        self.assertAlmostEqual(report["zeros"] / report["elements"], 0.5, delta=1e-6)
        before, _ = self.accuracy("pruned, not trained on", infer + ["--weights", self.path("pruned")])
        pruned, _ = self.accuracy("pruned", infer + ["--weights", self.train("pruned-tuned", MORE_STEPS, "1e-3",
                                                                            ["--weights", self.path("pruned"), "--keep-zeros", "*"])])
        self.assertGreater(pruned, before)
        self.assertGreater(pruned, floats - MOST_LOST)


if __name__ == "__main__":
    unittest.main()
