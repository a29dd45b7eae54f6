"""Compiled models: `partita.compile` returns a Program, or a TrainingStep with `train`."""

import os
import shutil

from partita_runtime import Session

from . import commands, models, optimizers, options, reports
from .training import TrainingStep


class Program:
    """A compiled model, which runs when it is called.

    path: the artifact. report: a Report of its sizes. inputs, outputs: tuples of TensorInfo. Loading happens at the first call.
    """

    def __init__(self, path, report, folder, session_options):
        self.path, self.report = path, report
        self._folder, self._session_options, self._session = folder, session_options, None

    @property
    def session(self) -> Session:
        """The loaded program: a Session."""
        if self._session is None:
            self._session = Session(self.path, **self._session_options)
        return self._session

    def unload(self):
        """Closes the session, if there is one. The next use loads the program again."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def inputs(self):
        return self.session.inputs

    @property
    def outputs(self):
        return self.session.outputs

    def __call__(self, *values, **feeds):
        """Runs the model on tensors of numpy, torch or jax, in order or by name. Returns the output, or a tuple of all."""
        return self.session(*values, **feeds)

    def run(self, output_names, feeds) -> list:
        """Runs the model as onnxruntime does: feeds is {name: tensor}, and all outputs come as a list for None."""
        return self.session.run(output_names, feeds)

    def save(self, path) -> str:
        """Copies the artifact. Weights stay in the model's files, unless they were embedded (embed_weights=True)."""
        shutil.copyfile(self.path, path)
        return os.fspath(path)

    def __repr__(self):
        return "<partita.%s %s: %s>" % (type(self).__name__, self.path, self.report.line())


def compile(model, *, example=None, dims=None, output=None, mesh=None, shard=None, plan=None, train=None, precision=None, zero=None,  # pylint: disable=redefined-builtin
            microbatches=None, schedule=None, recompute=None, memory=None, target=None, embed_weights=None, device=None, threads=0,
            **others) -> "Program | TrainingStep":
    """Compiles a model; returns a Program, or with `train` a TrainingStep.

        net = partita.compile("model.onnx", dims={"batch": 8, "seq": 128}, mesh={"data": 2, "tensor": 2}, shard="B=data;M=tensor,N=tensor")
        logits = net(ids)

    model: a path (.onnx, .pt2, .mlir, a Hugging Face folder), a family's name, or a torch.nn.Module with example=(input, ...).
    dims: sizes of symbolic dimensions. example: for a file, {input name: tensor} gives the shapes of its inputs; for a module, its
    inputs and, with `train`, the targets at the end.
    mesh, shard: how to divide it, highest priority first; or plan: a Plan, the path or the text of a plan file.
    train: an optimizer, as partita.adamw(3e-4, clip_norm=1). zero: 0 to 3. microbatches, schedule, recompute: as in a plan.
    precision: "f32", "bf16" or "f16". memory: most bytes per device, as "4 GB". target: "cpu" (the default) or "cuda:sm_90".
    output: path of the artifact; None: a temporary file, removed with the Program. embed_weights: copy the weights into it; the
    default is to do so for a torch.nn.Module. device, threads: as for Session.
    others: any option of `partita compile --help`, as dropout=0.1 for --dropout 0.1.

    Raises CompileError or UsageError with the message of the command line.
    """
    folder = options.Folder()
    optimizer = optimizers.of(train)
    source, words = models.locate(model, example, folder, training=optimizer is not None)
    if embed_weights is None:
        embed_weights = folder.is_used
    path = folder.path("model.partita") if output is None else os.fspath(output)
    words += options.plan_words(plan, mesh, shard, folder)
    words += options.words(dim=dims or None, precision=precision, zero=zero, microbatches=microbatches, schedule=schedule,
                           recompute=recompute, memory=memory, target=target, embed_weights=embed_weights, **others)
    words += optimizer.words() if optimizer else []
    report = reports.Report(commands.run("compile", source, "-o", path, *words).facts)
    session_options = {"device": device, "threads": threads}
    if optimizer is None:
        return Program(path, report, folder, session_options)
    return TrainingStep(Program(path, report, folder, session_options), optimizer)
