"""torch.compile(model, backend="partita"): inference with Partita. PyTorch finds the backend by the entry point of the wheel, or after
`import partita.torch_backend`.

    fast = torch.compile(model, backend="partita")
    fast = torch.compile(model, backend="partita", options={"mesh": {"tensor": 2}, "shard": "M=tensor,N=tensor"})

options: as for partita.compile. A part of a model that needs gradients, has sizes that vary, or has operators that Partita lacks, runs in
PyTorch; a PartitaWarning says so and why. So does a model whose weights changed after it was compiled.

Interface: https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

import warnings

import torch
from partita_runtime import PartitaError

from .commands import PartitaWarning
from .program import compile as compile_model


class _Frozen(torch.nn.Module):
    """A graph whose inputs at the positions of `weights` are parameters of the module."""

    def __init__(self, graph, weights, count):
        super().__init__()
        self.graph, self._count = graph, count
        self._names = {position: "weight_%d" % position for position in weights}
        for position, value in weights.items():
            self.register_buffer(self._names[position], value.detach())

    def forward(self, *inputs):
        rest = iter(inputs)
        return self.graph(*(getattr(self, self._names[i]) if i in self._names else next(rest) for i in range(self._count)))


def partita_backend(graph, example_inputs, options=None):
    """Compiles one graph of TorchDynamo; returns a function of its inputs."""
    try:
        return _compiled(graph, example_inputs, options or {})
    except (PartitaError, _NotForPartita) as error:
        reason = str(error)
    except Exception as error:  # pylint: disable=broad-exception-caught  # torch.export has no base class of its errors
        reason = "torch.export: %s" % error
    warnings.warn("a part of the model runs in PyTorch: %s" % reason, PartitaWarning, stacklevel=2)
    return graph.forward


class _NotForPartita(Exception):
    """Why a graph is left to PyTorch."""


def _compiled(graph, example_inputs, options):
    if not all(isinstance(value, torch.Tensor) for value in example_inputs):
        raise _NotForPartita("expected fixed sizes, found sizes that vary; torch.compile(dynamic=False) compiles each")
    if torch.is_grad_enabled() and any(value.requires_grad for value in example_inputs):
        raise _NotForPartita("expected inference, found parameters that need gradients; call the model under torch.no_grad()")
    if any(value.device.type != "cpu" for value in example_inputs):
        raise _NotForPartita("expected tensors on the CPU, found tensors on a GPU")
    weights = {i: value for i, value in enumerate(example_inputs) if _is_weight(value)}
    positions = [i for i in range(len(example_inputs)) if i not in weights]
    net = compile_model(_Frozen(graph, weights, len(example_inputs)).eval(), example=tuple(example_inputs[i] for i in positions), **options)
    results = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    if len(net.inputs) != len(positions) or len(net.outputs) != len(results):
        raise _NotForPartita("expected %d inputs and %d outputs, found %d and %d" % (
            len(positions), len(results), len(net.inputs), len(net.outputs)))
    names = [info.name for info in net.inputs]
    versions = [(value, value._version) for value in weights.values()]  # pylint: disable=protected-access
    warned = []

    def run(*inputs):
        if any(value._version != version for value, version in versions):  # pylint: disable=protected-access
            if not warned:
                warned.append(True)
                warnings.warn("the model runs in PyTorch, as its weights changed after it was compiled; call torch.compile again",
                              PartitaWarning, stacklevel=2)
            return graph(*inputs)
        return tuple(net.run(None, {name: inputs[i] for name, i in zip(names, positions)}))

    return run


def _is_weight(value):
    """True for parameters and buffers, which TorchDynamo marks."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


torch._dynamo.register_backend(compiler_fn=partita_backend, name="partita")  # pylint: disable=protected-access
