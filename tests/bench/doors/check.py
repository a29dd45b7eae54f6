"""Checks one model of zoo.py by one door: exports it, and compares what Partita makes of it with PyTorch.

`row` returns for each column of the table "yes", "-" for a division that divides nothing, or what went wrong.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "peers"))

import zoo
import make_pt2
import numpy
import onnx
import safetensors.torch
import torch

STEPS, FULL_STEPS = 2, 5
# Large models take steps of SGD, which lower the loss by about a tenth: Adam's first step moves each weight by the rate whatever its
# gradient, so gradients that are 0 but for rounding change the second loss.
LARGE, SGD_RATE = 200_000, 1e-2
DIVISIONS = {"B": "B=d", "tensor": "M=d,N=d", "H": "H=d"}
# The tolerances used for the models in tests/data.
OUTPUT_RELATIVE, OUTPUT_ABSOLUTE, LOSS_RELATIVE = 1e-4, 1e-5, 1e-4
GRADIENT_RELATIVE = 1e-3  # of the norm of all gradients


class Failure(Exception):
    pass


def first_output(result):
    if torch.is_tensor(result):
        return result
    # The order of a model's outputs in a file.
    return next(value for value in (result.to_tuple() if hasattr(result, "to_tuple") else result) if torch.is_tensor(value))


def without_dropout(model):
    for part in model.modules():
        for name in ("p", "drop_prob", "dropout", "attn_drop"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    return model


def loss_of(y, targets):
    if targets.is_floating_point():
        return torch.nn.functional.mse_loss(y, targets)
    return torch.nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))


class Check:
    def __init__(self, name, door, tools, folder):
        torch.manual_seed(0)
        self.door, self.tools, self.folder = door, tools, folder
        self.model, self.inputs = zoo.MODELS[name]()
        make_pt2.seed_weights(self.model)
        without_dropout(self.model).eval()
        self.has_batch_norm = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in self.model.modules())
        with torch.no_grad():
            self.expected = first_output(self.model(**self.inputs))
        draw = torch.Generator().manual_seed(11)
        if name in zoo.WITHOUT_CLASSES:
            self.targets = torch.randn(self.expected.shape, generator=draw)
        else:
            self.targets = torch.randint(self.expected.shape[-1], self.expected.shape[:-1], generator=draw)
        if "attention_mask" in self.inputs:
            self.targets[self.inputs["attention_mask"] == 0] = -100  # ignored by the loss, as usual
        is_large = sum(p.numel() for p in self.model.parameters()) > LARGE
        self.optimizer, self.rate = ("sgd", SGD_RATE) if is_large else ("adamw", 1e-3)
        self.is_full, self.steps = name in zoo.FULL, STEPS
        if self.is_full:
            self.optimizer, self.rate, self.steps = "adamw", 1e-4, FULL_STEPS

    def export(self, training):
        path = self.folder / f"model_{'train' if training else 'eval'}.{self.door}"
        self.model.train(training)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.door == "pt2":
                torch.export.save(torch.export.export(self.model, (), self.inputs), path)
            else:
                torch.onnx.export(self.model, (), path, kwargs=self.inputs, dynamo=True, optimize=False, verbose=False)
        self.model.eval()
        return path

    def call(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            unknown = re.findall(r"^ +(\S+), \d+ nodes?: ", done.stderr, re.MULTILINE)
            lines = [line for line in done.stderr.splitlines() if "error" in line] + done.stderr.splitlines() + [""]
            raise Failure("operators " + ", ".join(unknown) if unknown else f"exit {done.returncode}: {lines[0].strip()[:700]}")
        return done

    def compile(self, file, *options):
        artifact = self.folder / "model.partita"
        done = self.call(self.tools / "compiler/tools/partita", "compile", file, "-o", artifact, "--json", *options)
        return artifact, done.stderr

    def input_options(self, training):
        tensors = dict(self.inputs)
        if training:
            tensors["targets"] = self.targets
        options = []
        for name, value in tensors.items():
            path = self.folder / f"{name}.npy"
            numpy.save(path, value.numpy())
            options += ["--input", f"{name}={path}"]
        return [*options, "--threads", "1"]

    def compare(self, artifact):
        run = self.call(self.tools / "runtime/tools/partita-run", artifact, *self.input_options(False), "--json", "--output-dir", self.folder)
        name = json.loads(run.stdout)["outputs"][0]["name"]
        y, expected = numpy.load(self.folder / f"{name}.npy"), self.expected.numpy()
        if y.shape != expected.shape:
            return f"expected the shape {list(expected.shape)}, found {list(y.shape)}"
        difference = numpy.abs(y - expected)
        if (difference <= OUTPUT_ABSOLUTE + OUTPUT_RELATIVE * numpy.abs(expected)).all():
            return "yes"
        return f"differs by {difference.max():.2g} of {numpy.abs(expected).max():.2g}"

    def divided(self, file, shard):
        artifact, messages = self.compile(file, "--mesh", "d=2", "--shard", shard)
        if all(f"'{part.split('=')[0]}' divides nothing" in messages for part in shard.split(",")):
            return "-"
        return self.compare(artifact)

    def in_double(self):
        """The model in training mode, its inputs and its targets."""
        inputs = {name: value.double() if value.is_floating_point() else value for name, value in self.inputs.items()}
        targets = self.targets.double() if self.targets.is_floating_point() else self.targets
        return copy.deepcopy(self.model).double().train(), inputs, targets

    def expected_losses(self):
        """Of PyTorch in double precision. Sets the rate of SGD. In single precision, PyTorch's gradients of batch norms over few
        elements have errors of 1e-2."""
        (model, inputs, targets), losses = self.in_double(), []
        for _ in range(self.steps):
            loss = loss_of(first_output(model(**inputs)), targets)
            losses.append(loss.item())
            model.zero_grad()
            loss.backward()
            if len(losses) == 1:
                if self.optimizer == "sgd":
                    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]).item()
                    self.rate = min(SGD_RATE, 0.1 * losses[0] / norm**2)
                    optimizer = torch.optim.SGD(model.parameters(), lr=self.rate)
                else:
                    optimizer = torch.optim.AdamW(model.parameters(), lr=self.rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
            optimizer.step()
        return losses

    def trained(self, file):
        if self.has_batch_norm:
            if self.door == "onnx":
                return "-"  # torch.onnx.export writes batch norms for inference only
            file = self.export(True)
        loss = "mse" if self.targets.is_floating_point() else "cross-entropy"
        options = []
        fixed = [k for k, v in self.model.named_parameters() if not v.requires_grad]
        fixed += [k for k, v in self.model.named_buffers() if v.is_floating_point()]
        if self.door == "onnx" and fixed:
            # The file does not say what is trained. Of tied weights it has one.
            stored = {tensor.name for tensor in onnx.load(file, load_external_data=False).graph.initializer}
            names = [k for k, v in self.model.named_parameters(remove_duplicate=False) if v.requires_grad and k in stored]
            options = ["--trained", ";".join(names)]
        decay = 0.01 if self.optimizer == "adamw" else 0
        artifact, _ = self.compile(file, *options, "--train", self.optimizer, "--loss", loss, "--weight-decay", decay)
        expected = self.expected_losses()
        run = self.call(self.tools / "runtime/tools/partita-run", "train", artifact, *self.input_options(True), "--lr", self.rate, "--steps",
                        self.steps, "--quiet", "--json")
        losses = json.loads(run.stdout)["losses"]
        if all(abs(a - b) <= LOSS_RELATIVE * abs(b) for a, b in zip(losses, expected, strict=True)):
            return "yes"
        return f"losses {losses}, expected {expected}"

    def gradients(self, file):
        """Compares all gradients with PyTorch's in double precision: a step of SGD with rate 1 subtracts them."""
        if self.has_batch_norm:
            if self.door == "onnx":
                return "-"
            file = self.export(True)
        loss = "mse" if self.targets.is_floating_point() else "cross-entropy"
        artifact, _ = self.compile(file, "--train", "sgd", "--loss", loss, "--weight-decay", 0)
        checkpoint = self.folder / "checkpoint"
        self.call(self.tools / "runtime/tools/partita-run", "train", artifact, *self.input_options(True), "--lr", 1, "--steps", 1, "--quiet",
                  "--checkpoint-dir", checkpoint)
        after = {}
        for path in checkpoint.rglob("*.safetensors"):
            after.update(safetensors.torch.load_file(path))
        model, inputs, targets = self.in_double()
        loss_of(first_output(model(**inputs)), targets).backward()
        expected = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
        if missing := set(expected) - set(after):
            return f"expected a gradient for each parameter, found none for {sorted(missing)[:3]}"
        error = sum(((parameter.detach() - after[name].double() - expected[name]) ** 2).sum().item()
                    for name, parameter in model.named_parameters() if name in expected) ** 0.5
        norm = sum((gradient ** 2).sum().item() for gradient in expected.values()) ** 0.5
        return "yes" if error <= GRADIENT_RELATIVE * norm else f"differ by {error:.2g} of {norm:.2g}"

    def row(self):
        columns = {}

        def fill(name, function, *arguments):
            try:
                columns[name] = function(*arguments)
            except Exception as error:
                kind = "" if isinstance(error, Failure) else type(error).__name__ + ": "
                columns[name] = kind + str(error).strip()[:700]
                return None
            return columns[name]

        file = fill("exported", self.export, False)
        if not isinstance(file, pathlib.Path):
            return columns
        columns["exported"] = "yes"
        artifact = fill("imported", lambda: self.compile(file)[0])
        if not isinstance(artifact, pathlib.Path):
            return columns
        columns["imported"] = "yes"
        fill("equal", self.compare, artifact)
        for name, shard in DIVISIONS.items():
            if name == "H" and all(value.dim() != 4 for value in self.inputs.values()):
                columns[name] = "-"
            else:
                fill(name, self.divided, file, shard)
        # Last, because exports in training mode change running statistics.
        if self.is_full:
            fill("gradients", self.gradients, file)
        fill("trained", self.trained, file)
        return columns


def row(name, door, tools):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="partita-doors-") as folder:
        return Check(name, door, tools, pathlib.Path(folder)).row()
