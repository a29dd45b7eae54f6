"""torch.compile(model, backend="partita"): inference with Partita. PyTorch finds the backend by the entry point of the wheel, or after
`import partita.torch_backend`.

    fast = torch.compile(model, backend="partita")
    fast = torch.compile(model, backend="partita", options={"mesh": {"tensor": 2}, "shard": "M=tensor,N=tensor"})

options: as for partita.compile. A part of a model that needs gradients, has sizes that vary, or has operators that Partita lacks, runs in
PyTorch; a PartitaWarning says so and why. A part whose weights changed, or that is called with other weights, is compiled again, with up
to MOST_COMPILATIONS sets of weights; then it runs in PyTorch as well. A change through `weight.data` cannot be seen: call
torch.compiler.reset() after it. Results are contiguous.

Interface: https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

import threading
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


# The number of sets of weights that one part of a model is compiled with; TorchDynamo compiles a function again as many times.
MOST_COMPILATIONS = 8


def partita_backend(graph, example_inputs, options=None):
    """Compiles one graph of TorchDynamo; returns a function of its inputs. Raises UsageError for unknown options."""
    part = _Part(graph, example_inputs, options or {})
    try:
        part.compile(example_inputs)
    except (CompileError, _NotForPartita) as error:
        _warn(error)
        return graph.forward
    return lambda *inputs: part(*inputs)  # pylint: disable=unnecessary-lambda  # PyTorch wants a function


def _warn(why):
    warnings.warn("a part of the model runs in PyTorch: %s" % why, PartitaWarning, stacklevel=4)


class _Part:
    """A graph, compiled once for each set of weights that it is called with, up to MOST_COMPILATIONS."""

    def __init__(self, graph, example_inputs, options):
        self._graph, self._options = graph, options
        self._weights = [i for i, value in enumerate(example_inputs) if _is_weight(value)]
        self._positions = [i for i in range(len(example_inputs)) if i not in set(self._weights)]
        self._programs, self._compilations, self._is_complete = [], 0, False
        self._lock = threading.Lock()

    def __call__(self, *inputs):
        program = self._find(inputs) or self._compile_again(inputs)
        return self._graph(*inputs) if program is None else program(inputs)

    def _find(self, inputs):
        return next((each for each in self._programs if each.is_for(inputs)), None)

    def _compile_again(self, inputs):
        """The program for these weights; None, after one warning, if there is none."""
        with self._lock:
            program = self._find(inputs)  # of another thread
            if program is not None or self._is_complete:
                return program
            self._programs = [each for each in self._programs if not each.is_outdated()]
            try:
                if self._compilations == MOST_COMPILATIONS:
                    raise _NotForPartita("expected at most %d sets of weights, found another; torch.compiler.reset() and torch.compile begin "
                                         "again" % MOST_COMPILATIONS)
                return self.compile(inputs)
            except (CompileError, _NotForPartita) as error:
                self._is_complete = True
                _warn(error)
                return None

    def compile(self, inputs):
        """Compiles the graph with the weights among `inputs`."""
        weights = {i: inputs[i] for i in self._weights}
        results = next(node for node in self._graph.graph.nodes if node.op == "output").args[0]
        _check(self._graph, inputs, weights, results)
        self._compilations += 1
        try:
            exported = torch.export.export(_Frozen(self._graph, weights, len(inputs)).eval(), tuple(inputs[i] for i in self._positions))
        except Exception as error:  # pylint: disable=broad-exception-caught  # torch.export's errors have no base class
            raise _NotForPartita("torch.export: %s" % error) from error
        net = compile_model(exported, embed_weights=True, **self._options)
        if len(net.inputs) != len(self._positions) or len(net.outputs) != len(results):
            raise _NotForPartita("expected %d inputs and %d outputs, found %d and %d; a part that draws random numbers has more" % (
                len(self._positions), len(results), len(net.inputs), len(net.outputs)))
        program = _FrozenProgram(net, weights, self._positions)
        self._programs.insert(0, program)
        return program


class _FrozenProgram:
    """A compiled graph with the weights that are its constants."""

    def __init__(self, net, weights, positions):
        self._net, self._positions = net, positions
        self._names = [info.name for info in net.inputs]
        self._weights = [(i, value, value._version, value.data_ptr()) for i, value in weights.items()]  # pylint: disable=protected-access

    def __call__(self, inputs):
        return tuple(self._net.run(None, {name: inputs[i] for name, i in zip(self._names, self._positions)}))

    def is_for(self, inputs):
        return all(inputs[i] is value for i, value, _, _ in self._weights) and not self.is_outdated()

    def is_outdated(self):
        """True once a weight has changed: its version never comes back."""
        return any(value._version != version or value.data_ptr() != address  # pylint: disable=protected-access
                   for _, value, version, address in self._weights)


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
