"""Pruned weights: the same elements as PyTorch's, the same results after reordering, and zeros that stay through training."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
MODELS = "tests/data/lora-tiny"
MASKS = "tests/data/pruned-tiny"
SIZES = ("--dim", "batch=2,seq=8")
# Options of `partita prune` that make the masks of this name in MASKS.
WAYS = {"half": ("--sparsity", "0.5"), "global": ("--sparsity", "0.3", "--global"), "2of4": ("--pattern", "2:4")}


def read(path):
    """The tensors of a safetensors file, of F32, F64, BOOL and BF16 (as integers), as (shape, numbers)."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        letter = {"F32": "f", "F64": "d", "BOOL": "?", "BF16": "H"}[entry["dtype"]]
        tensors[name] = (entry["shape"], memoryview(data)[begin:end].cast(letter).tolist())
    return tensors


def write(path, tensors, dtype="F32"):
    """Writes tensors, as (shape, numbers), to a safetensors file of F32 or F64."""
    header, body = {}, b""
    for name, (shape, values) in tensors.items():
        data = struct.pack("<%d%s" % (len(values), {"F32": "f", "F64": "d"}[dtype]), *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def read_folder(folder):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("model") and name.endswith(".safetensors"):
            tensors.update(read(os.path.join(folder, name)))
    return tensors


def groups(shape, values, in_by_out):
    """The elements of a matrix in groups of four terms of one sum."""
    rows, columns = shape
    lines = [values[j::columns] for j in range(columns)] if in_by_out else [values[i * columns:(i + 1) * columns] for i in range(rows)]
    return [line[i:i + 4] for line in lines for i in range(0, len(line), 4)]


class PruneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *arguments, code=0):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def prune(self, model, output, *options):
        return json.loads(self.run_command(PARTITA, "prune", model, *SIZES, *options, "-o", self.path(output), "--json"))

    def outputs(self, model):
        self.run_command(PARTITA, "compile", model, *SIZES, "-o", self.path("m.partita"))
        out = self.path("out")
        self.run_command(PARTITA_RUN, self.path("m.partita"), "--input", "input_ids=random:0:60", "--output-dir", out)
        (name,) = os.listdir(out)
        with open(os.path.join(out, name), "rb") as file:
            data = file.read()
        return memoryview(data[128:]).cast("f").tolist()

    def test_masks_are_those_of_torch(self):
        for model in ("llama", "gpt2"):
            masks, weights = read(f"{MASKS}/{model}.safetensors"), read_folder(f"{MODELS}/{model}")
            for way, options in WAYS.items():
                with self.subTest(model=model, way=way):
                    report = self.prune(f"{MODELS}/{model}", f"{model}-{way}", *options)
                    pruned = read_folder(self.path(f"{model}-{way}"))
                    self.assertEqual(pruned.keys(), weights.keys())
                    expected = {name.split(".", 1)[1]: mask for name, (_, mask) in masks.items() if name.startswith(way + ".")}
                    self.assertEqual({tensor["name"] for tensor in report["pruned"]}, set(expected))
                    for name, (shape, values) in weights.items():
                        self.assertEqual(pruned[name][0], shape)
                        mask = expected.get(name, [True] * len(values))
                        self.assertEqual(pruned[name][1], [value if keeps else 0 for value, keeps in zip(values, mask)], name)
                    self.assertEqual(report["zeros"], sum(len(mask) - sum(mask) for mask in expected.values()))

    def test_reordered_units_change_no_results(self):
        for model, reordered in (("llama", "mlp.down_proj.weight"), ("gpt2", "mlp.c_proj.weight")):
            with self.subTest(model=model):
                plain = {tensor["name"]: tensor for tensor in self.prune(f"{MODELS}/{model}", model + "-plain", "--pattern", "2:4")["pruned"]}
                report = self.prune(f"{MODELS}/{model}", model, "--pattern", "2:4", "--permute")
                better = 0
                for tensor in report["pruned"]:
                    before = plain[tensor["name"]]
                    self.assertEqual(tensor["permuted"], tensor["name"].endswith(reordered), tensor)
                    self.assertGreaterEqual(tensor["kept_magnitude"], before["kept_magnitude"] - 1e-9)
                    better += tensor["kept_magnitude"] > before["kept_magnitude"] + 1e-3
                self.assertEqual(better, 2)
                for tensor in report["pruned"]:
                    shape, values = read_folder(self.path(model))[tensor["name"]]
                    for group in groups(shape, values, model == "gpt2"):
                        self.assertLessEqual(sum(value != 0 for value in group), 2)
                # All of 4 remain, and still units are reordered for 3 of 4 of the only weight that is pruned: the others show that
                # the reordered model is the same one.
                keep = ";".join(tensor["name"] for tensor in report["pruned"] if not tensor["permuted"])
                self.prune(f"{MODELS}/{model}", model + "-one", "--pattern", "3:4", "--permute", "--keep", keep)
                self.prune(self.path(model + "-one"), model + "-two", "--pattern", "3:4", "--keep", keep)
                self.assertEqual(read_folder(self.path(model + "-one")), read_folder(self.path(model + "-two")))
                self.check_equal_up_to_order(model, reordered)

    def check_equal_up_to_order(self, model, reordered):
        """The reordered and pruned model computes what the original does with the same elements set to zero."""
        original, moved = read_folder(f"{MODELS}/{model}"), read_folder(self.path(model + "-one"))
        restored = dict(moved)
        turned = model == "gpt2"
        for name in (name for name in original if name.endswith(reordered)):
            shape, values = original[name]
            length, lines = (shape[0], shape[1]) if turned else (shape[1], shape[0])

            def unit(tensor, i, turned=turned, shape=shape):
                return tensor[i * shape[1]:(i + 1) * shape[1]] if turned else tensor[i::shape[1]]
            new = moved[name][1]
            # A unit is found by its elements that are not zero.
            order = []
            for i in range(length):
                column = unit(new, i)
                matches = [k for k in range(length) if all(x in (0, y) for x, y in zip(column, unit(values, k)))]
                self.assertEqual(len(matches), 1, name)
                order.append(matches[0])
            self.assertNotEqual(order, list(range(length)))
            self.assertEqual(sorted(order), list(range(length)))
            masked = list(values)
            for i, k in enumerate(order):
                for line, x in enumerate(unit(new, i)):
                    masked[k * shape[1] + line if turned else line * shape[1] + k] = x
            self.assertEqual(lines * length, len(masked))
            restored[name] = (shape, masked)
        for name in original:
            if not name.endswith(reordered) and moved[name] != original[name]:
                restored[name] = original[name]
        folder = self.path(model + "-restored")
        os.makedirs(folder)
        write(os.path.join(folder, "model.safetensors"), restored)
        shutil.copy(f"{MODELS}/{model}/config.json", folder)
        one, two = self.outputs(self.path(model + "-one")), self.outputs(folder)
        largest = max(abs(x) for x in two)
        self.assertGreater(largest, 0.1)
        for x, y in zip(one, two):
            self.assertAlmostEqual(x, y, delta=1e-5 * largest)

    def test_zeros_stay_through_training(self):
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(200) for b in (i * i % 61, 0)))
        self.prune(f"{MODELS}/llama", "pruned", "--pattern", "2:4", "--keep", "lm_head.*")
        before = read_folder(self.path("pruned"))
        # With a plan, and the states of ZeRO divided.
        plans = {"adamw": (), "lamb": ("--clip-norm", "0.5"), "sgd": ("--momentum", "0.9", "--weight-decay", "0.1"),
                 "adam": ("--mesh", "d=2,t=2", "--shard", "B=d;M=t,N=t", "--zero", "1"), "adafactor": ("--precision", "bf16")}
        for optimizer, options in plans.items():
            with self.subTest(optimizer=optimizer):
                self.run_command(PARTITA, "compile", self.path("pruned"), *SIZES, "--train", optimizer, "--keep-zeros", "*_proj.weight", *options,
                                 "-o", self.path("t.partita"))
                self.run_command(PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", "4", "--lr", "0.01",
                                 "--checkpoint-dir", self.path(optimizer), "--json")
                after = read_folder(self.path(optimizer + "/step-00000004"))
                for name, (_, values) in before.items():
                    if not name.endswith("_proj.weight"):
                        continue
                    pairs = list(zip(values, after[name][1]))
                    self.assertTrue(all(y == 0 for x, y in pairs if x == 0), name)
                    if "bf16" not in options:
                        self.assertGreater(sum(x != y for x, y in pairs), len(pairs) // 4, name)
        # Without the option, zeros are trained.
        self.run_command(PARTITA, "compile", self.path("pruned"), *SIZES, "--train", "adamw", "-o", self.path("t.partita"))
        self.run_command(PARTITA_RUN, "train", self.path("t.partita"), "--data", self.path("tokens.bin"), "--steps", "1", "--lr", "0.01",
                         "--checkpoint-dir", self.path("free"), "--json")
        name = "model.layers.0.mlp.down_proj.weight"
        after = read_folder(self.path("free/step-00000001"))[name][1]
        self.assertTrue(any(y != 0 for x, y in zip(before[name][1], after) if x == 0))

    def make_llama(self, name, change, dtype):
        """Llama's folder with the weights change(name, values) of another type."""
        os.makedirs(self.path(name))
        shutil.copy(f"{MODELS}/llama/config.json", self.path(name))
        tensors = {key: (shape, change(key, values)) for key, (shape, values) in read(f"{MODELS}/llama/model.safetensors").items()}
        write(os.path.join(self.path(name), "model.safetensors"), tensors, dtype)
        return tensors

    def test_kept_elements_keep_their_bits(self):
        # No element is a number of 32 bits, and some are smaller than all of them but zero.
        weights = self.make_llama("wide", lambda _, values: [1e-60 if i % 50 == 7 else x * (1 + 1e-12) for i, x in enumerate(values)], "F64")
        for way, options in (("half", ("--sparsity", "0.5")), ("moved", ("--pattern", "2:4", "--permute"))):
            report = self.prune(self.path("wide"), way, *options)
            names = {tensor["name"] for tensor in report["pruned"]}
            self.assertGreater(len(names), 4)
            for name, (shape, values) in read_folder(self.path(way)).items():
                self.assertEqual(shape, weights[name][0])
                if name in names or way == "moved":
                    self.assertLessEqual({x for x in values if x != 0}, set(weights[name][1]), name)
                else:
                    self.assertEqual(values, weights[name][1], name)

    def test_all_weights_but_one_are_left_alone(self):
        name = "model.layers.1.mlp.up_proj.weight"
        report = self.prune(f"{MODELS}/llama", "one", "--sparsity", "0.5", "--keep", f"*; !{name}")
        self.assertEqual([tensor["name"] for tensor in report["pruned"]], [name])

    def test_weights_that_are_not_finite(self):
        name = "model.layers.0.mlp.up_proj.weight"
        for number in ("nan", "inf"):
            self.make_llama(number, lambda key, values, number=number: [float(number), *values[1:]] if key == name else values, "F32")
            error = self.run_command(PARTITA, "prune", self.path(number), *SIZES, "--sparsity", "0.5", "-o", self.path("x"), code=1)
            self.assertIn(f"found {number} in '{name}' (element 0)", error)
            self.assertFalse(os.path.exists(self.path("x")))
            self.prune(self.path(number), number + "-kept", "--sparsity", "0.5", "--keep", name)

    def test_no_other_weights_are_copied(self):
        shutil.copytree(f"{MODELS}/llama", self.path("mixed"), ignore=shutil.ignore_patterns("adapter", "*.safetensors"))
        shutil.copy(f"{MODELS}/llama/model.safetensors", self.path("mixed"))
        for name in ("tf_model.h5", "consolidated.00.pth", "flax_model.msgpack", "tokenizer.model"):
            with open(os.path.join(self.path("mixed"), name), "wb") as file:
                file.write(b"any")
        self.prune(self.path("mixed"), "alone", "--sparsity", "0.5")
        names = os.listdir(self.path("alone"))
        self.assertIn("tokenizer.model", names)
        self.assertEqual([name for name in names if name.endswith((".h5", ".pth", ".msgpack"))], [])

    def test_any_model_with_files(self):
        model = "tests/data/onnx-tiny/gpt2/model_eval.onnx"
        report = json.loads(self.run_command(PARTITA, "prune", model, "--dim", "batch=2,seq=8", "--sparsity", "0.5", "-o", self.path("onnx"), "--json"))
        self.assertGreater(len(report["pruned"]), 4)
        self.run_command(PARTITA, "compile", model, "--dim", "batch=2,seq=8", "--weights", self.path("onnx"), "-o", self.path("m.partita"))

    # A kernel of a 1x1 convolution that the model multiplies as a matrix.
    def test_kernel_of_1x1(self):
        values = [((7 * i) % 31 + 1) / 16 for i in range(24)]
        write(self.path("w.safetensors"), {"w": ([3, 8, 1, 1], values)})
        begin = os.path.getsize(self.path("w.safetensors")) - 96
        with open(self.path("m.mlir"), "w") as file:
            file.write("""
func.func @main(%%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
                %%k: tensor<3x8x1x1xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w.safetensors", %d, 96, f32>})
    -> (tensor<4x3xf32> {nn.name = "y"}) {
  %%w = nn.reshape %%k : tensor<3x8x1x1xf32> -> tensor<3x8xf32>
  %%0 = nn.dot_general %%x, %%w contract = [1] x [1] : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
  return %%0 : tensor<4x3xf32>
}
""" % begin)
        self.run_command(PARTITA, "prune", self.path("m.mlir"), "--pattern", "2:4", "-o", self.path("pruned"))
        (shape, pruned), = read_folder(self.path("pruned")).values()
        self.assertEqual(shape, [3, 8, 1, 1])
        for before, after in zip(groups([3, 8], values, False), groups([3, 8], pruned, False)):
            self.assertEqual(after, [value if value >= sorted(before)[2] else 0 for value in before])

    def test_refusals(self):
        model = f"{MODELS}/llama"
        for code, expected, arguments in (
                (2, "found neither", ()),
                (2, "found both", ("--sparsity", "0.5", "--pattern", "2:4")),
                (2, "expected a number above 0 and up to 1, found '1.5'", ("--sparsity", "1.5")),
                (2, "--pattern: expected KEPT:OF, as in 2:4, found '4:2'", ("--pattern", "4:2")),
                (2, "--keep: expected patterns of names, found '['", ("--sparsity", "0.5", "--keep", "[")),
                (1, "--keep: expected 'x*' to match a weight that can be pruned, found none; one is '", ("--sparsity", "0.5", "--keep", "*;x*")),
                (1, "expected a weight of a product to prune, found none", ("--sparsity", "0.5", "--keep", "*")),
        ):
            self.assertIn(expected, self.run_command(PARTITA, "prune", model, *SIZES, *arguments, "-o", self.path("x"), code=code))
            self.assertFalse(os.path.exists(self.path("x")))
        for code, globs, found in ((1, "nothing*", "'nothing*'"), (1, "[", "'['"), (1, "*norm*", "'*norm*'"), (1, "!*q_proj*", "'!*q_proj*'"), (2, "", "''")):
            error = self.run_command(PARTITA, "compile", model, *SIZES, "--train", "sgd", "--keep-zeros", globs, "-o", self.path("x"), code=code)
            self.assertIn("--keep-zeros: expected", error)
            self.assertIn(found, error)
        self.assertIn("which exists", self.run_command(PARTITA, "prune", model, *SIZES, "--sparsity", "0.5", "-o", self.folder, code=1))
        self.assertIn("expected weights in files", self.run_command(PARTITA, "prune", "coatnet-0", "--sparsity", "0.5", "-o", self.path("x"), code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
