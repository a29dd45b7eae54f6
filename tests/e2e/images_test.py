"""A small CoAtNet learns Fashion-MNIST with images divided over two devices; the trained model classifies on one device.

Follows a user's steps: compile --train, train, compile --weights CHECKPOINT, run.
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
BATCH, STEPS = 64, 2400
MEAN, DEVIATION = 0.286, 0.353
PIXELS = ["--pixel-mean", str(MEAN), "--pixel-deviation", str(DEVIATION)]
SHOWN = 1000  # images per run
ACCURACY = 0.88


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


class ImagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.data = subprocess.run(["bash", FETCH], check=True, capture_output=True, text=True, env=home()).stdout.strip()
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(CONFIG, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self):
        """Returns the folder of the last checkpoint."""
        run([COMPILER, "compile", self.folder, "--dim", "batch=%d" % BATCH, "--train", "adamw", "--weight-decay", "0.05",
             "--no-decay", "*.bias;*norm*", "--clip-norm", "1", "--mesh", "h=2", "--shard", "H=h", "-o",
             self.path("train.partita")])
        run([RUNNER, "train", self.path("train.partita"), "--data", os.path.join(self.data, "train-images-idx3-ubyte"),
             "--steps", str(STEPS), "--lr", "3e-3", "--schedule", "cosine", "--warmup", "100", "--checkpoint-dir",
             self.path("checkpoints"), "--log", self.path("log.jsonl"), "--quiet"] + PIXELS)
        with open(self.path("log.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line) for line in file]
        print("loss %.3f, at last %.3f; median step %.3f s" % (steps[0]["loss"], sum(s["loss"] for s in steps[-50:]) / 50,
                                                              sorted(s["seconds"] for s in steps)[STEPS // 2]), flush=True)
        return self.path("checkpoints/step-%08d" % STEPS)

    def classify(self, images):
        """Predicted classes of SHOWN images."""
        write_images(self.path("x.npy"), images)
        run([RUNNER, self.path("infer.partita"), "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out")])
        logits = read_floats(self.path("out/y.npy"))
        rows = [logits[at:at + 10] for at in range(0, len(logits), 10)]
        return [max(range(10), key=row.__getitem__) for row in rows]

    def test_accuracy(self):
        run([COMPILER, "compile", self.folder, "--weights", self.train(), "--dim", "batch=%d" % SHOWN, "-o",
             self.path("infer.partita")])
        images = read_idx(os.path.join(self.data, "t10k-images-idx3-ubyte"))
        labels = read_idx(os.path.join(self.data, "t10k-labels-idx1-ubyte"))
        self.assertEqual(len(labels), 10000)
        size = SHOWN * FOUND_SIDE * FOUND_SIDE
        classes = [found for at in range(0, len(images), size) for found in self.classify(images[at:at + size])]
        accuracy = sum(found == label for found, label in zip(classes, labels)) / len(labels)
        print("accuracy on the test images: %.2f %%" % (100 * accuracy), flush=True)
        self.assertGreater(accuracy, ACCURACY)


if __name__ == "__main__":
    unittest.main()
