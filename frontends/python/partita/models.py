"""What a caller may give as a model: a file, a folder, a family's name, or a module of PyTorch."""

import inspect
import os
import sys

from partita_runtime import InvalidError

from . import options


def locate(model, example, folder, training=False):
    """Returns (what the compiler opens, further words of its command line).

    A module of torch is exported with `example`, its inputs, to a .pt2 file in `folder`. The last value of a training step's example is
    the targets, unless the module needs it as an input.
    """
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), _shapes(example)
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(model, torch.nn.Module):
            return _save(torch, _export(torch, model, example, training), folder), []
        if isinstance(model, torch.export.ExportedProgram):
            return _save(torch, model, folder), []
    raise InvalidError("expected the path of a model (.onnx, .pt2, .mlir, a Hugging Face folder), the name of a family as 'coatnet-0', or a "
                       "torch.nn.Module with its example inputs; found %s" % type(model).__name__)


def _shapes(example):
    """The shapes of a file's inputs: {name: tensor}."""
    if example is None:
        return []
    if not isinstance(example, dict):
        raise InvalidError("expected example={input name: tensor} for a model in a file, or dims={\"batch\": 8}; found %s without names" %
                           type(example).__name__)
    shapes = {name: ",".join(str(size) for size in value.shape) for name, value in example.items()}
    return options.words(input_shape=["%s=%s" % each for each in shapes.items()])


def _export(torch, module, example, training):
    if example is None:
        raise InvalidError("expected example=(input, ...) with a torch.nn.Module, to export it; found none")
    was_training = module.training
    module.train(training)
    try:
        named = example if isinstance(example, dict) else None
        values = () if named else tuple(example)
        if training and _takes(module, values[:-1]):
            values = values[:-1]  # the targets
        with torch.no_grad():
            return torch.export.export(module, values, named)
    finally:
        module.train(was_training)


def _takes(module, values):
    try:
        inspect.signature(module.forward).bind(*values)
    except TypeError:
        return False
    return True


def _save(torch, program, folder):
    path = folder.path("model.pt2")
    torch.export.save(program, path)
    return path
