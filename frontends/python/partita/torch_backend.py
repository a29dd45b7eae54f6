"""torch.compile(model, backend="partita"): inference with Partita. PyTorch finds the backend by the entry point of the wheel, or after
`import partita.torch_backend`.

    fast = torch.compile(model, backend="partita")
    fast = torch.compile(model, backend="partita", options={"mesh": {"tensor": 2}, "shard": "M=tensor,N=tensor"})

options: as for partita.compile. A part of a model that needs gradients, has sizes that vary, or has operators that Partita lacks, runs in
PyTorch; a PartitaWarning says so and why. So does a part that is called with other weights than it was compiled with, or whose weights
changed. A change through `weight.data` cannot be seen: call torch.compiler.reset() after it. Results are contiguous.

Interface: https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

import warnings

import torch

from .commands import CompileError, PartitaWarning
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


class _NotForPartita(Exception):
    """Why a graph is left to PyTorch."""


def partita_backend(graph, example_inputs, options=None):
    """Compiles one graph of TorchDynamo; returns a function of its inputs. Raises UsageError for unknown options."""
    try:
        return _compiled(graph, example_inputs, options or {})
    except (CompileError, _NotForPartita) as error:
        warnings.warn("a part of the model runs in PyTorch: %s" % error, PartitaWarning, stacklevel=2)
    return graph.forward


def _compiled(graph, example_inputs, options):
    weights = {i: value for i, value in enumerate(example_inputs) if _is_weight(value)}
    positions = [i for i in range(len(example_inputs)) if i not in weights]
    results = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    _check(graph, example_inputs, weights, results)
    try:
        exported = torch.export.export(_Frozen(graph, weights, len(example_inputs)).eval(), tuple(example_inputs[i] for i in positions))
    except Exception as error:  # pylint: disable=broad-exception-caught  # torch.export's errors have no base class
        raise _NotForPartita("torch.export: %s" % error) from error
    net = compile_model(exported, embed_weights=True, **options)
    if len(net.inputs) != len(positions) or len(net.outputs) != len(results):
        raise _NotForPartita("expected %d inputs and %d outputs, found %d and %d; a part that draws random numbers has more" % (
            len(positions), len(results), len(net.inputs), len(net.outputs)))
    names = [info.name for info in net.inputs]
    frozen = [(i, value, value._version, value.data_ptr()) for i, value in weights.items()]  # pylint: disable=protected-access
    warned = []

    def run(*inputs):
        for i, value, version, address in frozen:
            if inputs[i] is not value or value._version != version or value.data_ptr() != address:  # pylint: disable=protected-access
                if not warned:
                    warned.append(True)
                    warnings.warn("a part of the model runs in PyTorch: expected the weights that it was compiled with, found others; "
                                  "torch.compiler.reset() and torch.compile compile it again", PartitaWarning, stacklevel=2)
                return graph(*inputs)
        return tuple(net.run(None, {name: inputs[i] for name, i in zip(names, positions)}))

    return run


def _check(graph, example_inputs, weights, results):
    if not all(isinstance(value, torch.Tensor) for value in example_inputs):
        raise _NotForPartita("expected fixed sizes, found sizes that vary; torch.compile(dynamic=False) compiles each")
    if len(weights) == len(example_inputs):
        raise _NotForPartita("expected inputs that are not weights, found none")
    if torch.is_grad_enabled() and any(value.requires_grad for value in example_inputs):
        raise _NotForPartita("expected inference, found parameters that need gradients; call the model under torch.no_grad()")
    if any(value.device.type != "cpu" for value in example_inputs):
        raise _NotForPartita("expected tensors on the CPU, found tensors on a GPU")
    if any(value.is_inference() for value in weights.values()):
        raise _NotForPartita("expected weights whose changes can be seen, found weights made under torch.inference_mode(); make the model "
                             "outside it")
    inputs = {_storage(node) for node in graph.graph.nodes if node.op == "placeholder"}
    if any(_storage(node) in inputs for node in results if _storage(node) is not None):
        raise _NotForPartita("expected new tensors as results, found a view of an input")


def _storage(node):
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None  # pylint: disable=protected-access


def _is_weight(value):
    """True for parameters and buffers, which TorchDynamo marks."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


# An installed wheel has an entry point, by which PyTorch registers the backend itself.
if "partita" not in torch._dynamo.list_backends():  # pylint: disable=protected-access
    torch._dynamo.register_backend(compiler_fn=partita_backend, name="partita")  # pylint: disable=protected-access
