"""A compiled model that is loaded, with its parameters and memory."""

import contextlib
import ctypes
import dataclasses
import os
import sys
import threading

from . import errors, native, tensors
from .native import check, lib

_ROLES = ("data", "learning_rate", "step", "seed")


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model.

    shape: of the whole tensor on all devices. role: "data", or what a training step sets itself ("learning_rate", "step",
    "seed"). limit: exclusive upper bound of an input's values, such as token ids; 0: none. bytes: of the whole tensor.
    """
    name: str
    shape: tuple
    dtype: str
    bytes: int
    role: str = "data"
    limit: int = 0

    @property
    def type(self):
        """As onnxruntime names it."""
        return "tensor(%s)" % {"float32": "float", "float64": "double"}.get(self.dtype, self.dtype)

    def __repr__(self):
        return "%s: %s%s" % (self.name, self.dtype, list(self.shape))


@dataclasses.dataclass(frozen=True)
class ParameterInfo:
    """A parameter of a model, or a state of its optimizer (is_state). is_updated: training steps change it."""
    name: str
    shape: tuple
    dtype: str
    bytes: int
    is_state: bool
    is_updated: bool

    def __repr__(self):
        return "%s: %s%s" % (self.name, self.dtype, list(self.shape))


def _describe(info):
    code = (info.type.code, info.type.bits)
    return {"name": info.name.decode(), "shape": tuple(info.shape[i] for i in range(info.ndim)), "dtype": tensors.NAMES[code],
            "bytes": info.bytes}


def open_options(device, threads, weights_dir, join_job, timeout, seed):
    """A partita_options."""
    return native.Options(native.ABI_VERSION, ctypes.sizeof(native.Options), _encoded(weights_dir), _encoded(device), threads, int(join_job),
                          timeout, seed)


class Session:
    """Runs a compiled model (`model.partita`).

        session = partita.Session("model.partita")
        logits, = session.run(None, {"input_ids": ids})
        logits = session(ids)

    device: "cpu", "cuda" or "null"; None: what the model was compiled for. threads: CPU threads of all devices together; 0: one per
    processor of this process. weights_dir: folder of relative weight paths; None: the artifact's. timeout: seconds that ranks wait
    for each other. join_job: this process is one rank of an mpirun, srun or torchrun job.

    Tensors of numpy, torch and jax are read in place, without a copy, and results are of the kind of the first tensor given.
    Calls from several threads wait for one another. A process that was forked after loading cannot use the session.
    """

    def __init__(self, path, *, device=None, threads=0, weights_dir=None, join_job=False, timeout=60.0, seed=0):
        self.path = os.fspath(path)
        self._handle = ctypes.c_void_p()
        self._lock = threading.RLock()
        self._process = os.getpid()
        options = open_options(device, threads, weights_dir, join_job, timeout, seed)
        check(lib.partita_open(os.fsencode(self.path), ctypes.byref(options), ctypes.byref(self._handle)))
        self.inputs = tuple(self._tensor(lib.partita_input, i) for i in range(lib.partita_input_count(self._handle)))
        self.outputs = tuple(self._tensor(lib.partita_output, i) for i in range(lib.partita_output_count(self._handle)))
        self.device_count = lib.partita_device_count(self._handle)
        self.rank = lib.partita_rank(self._handle)
        self._prepare()

    # --- What the model is ---

    def get_inputs(self) -> list:
        """The inputs, as with onnxruntime."""
        return list(self.inputs)

    def get_outputs(self) -> list:
        """The outputs, as with onnxruntime."""
        return list(self.outputs)

    @property
    def data_inputs(self) -> tuple:
        """The inputs that a training step gets from its caller; all inputs of other models."""
        return tuple(info for info in self.inputs if info.role == "data")

    @property
    def parameters(self) -> tuple:
        """All parameters and optimizer states: a tuple of ParameterInfo."""
        infos, info = [], native.ParameterInfo()
        with self._open():
            for i in range(lib.partita_parameter_count(self._handle)):
                check(lib.partita_parameter(self._handle, i, ctypes.byref(info)))
                infos.append(ParameterInfo(is_state=bool(info.is_state), is_updated=bool(info.is_updated), **_describe(info)))
        return tuple(infos)

    def __repr__(self):
        state = "" if self._handle else ", closed"
        return "<partita.Session %s on %d device%s%s: (%s) -> (%s)>" % (
            self.path, self.device_count, "" if self.device_count == 1 else "s", state, ", ".join(map(repr, self.inputs)),
            ", ".join(map(repr, self.outputs)))

    # --- Running ---

    def run(self, output_names, feeds) -> list:
        """Runs the model once. feeds: {input name: tensor}. Returns a list of the outputs named, or all of them for None."""
        indices = range(len(self.outputs)) if output_names is None else [self._output_index(name) for name in output_names]
        results = self._run(self._in_order(feeds, self.inputs))
        return [results[i] for i in indices]

    def __call__(self, *values, **feeds):
        """Runs the model on tensors in the order of `inputs`, or by name. Returns the only output, or a tuple of all."""
        results = self._run(self._merge(values, feeds, self.inputs))
        return results[0] if len(results) == 1 else tuple(results)

    # --- Training ---

    def train_step(self, *values, learning_rate, **feeds) -> float:
        """Takes one training step on a batch (the `data_inputs`, in order or by name). Returns the loss."""
        given = self._merge(values, feeds, self.data_inputs)
        loss = ctypes.c_double()
        with self._open():
            array, held = self._tensors_of(given, self.data_inputs)
            check(lib.partita_train_step(self._handle, array, len(given), learning_rate, ctypes.byref(loss)))
        del held
        return loss.value

    @property
    def step(self) -> int:
        """Training steps taken, including steps before a loaded checkpoint."""
        with self._open():
            return lib.partita_step(self._handle)

    def read_parameter(self, info, kind="numpy"):
        """Copies the whole parameter `info` (a ParameterInfo) into a new tensor of `kind`: "numpy", "torch" or "jax"."""
        array, tensor = tensors.new_like(kind, info.shape, info.dtype), native.Tensor()
        held = tensors.fill(tensor, array, info.dtype)
        code = tensors.CODES[info.dtype]
        tensor.type.code, tensor.type.bits = code  # memory for bfloat16 may be uint16
        with self._open():
            check(lib.partita_read_parameter(self._handle, info.name.encode(), ctypes.byref(tensor)))
        del held
        return tensors.finish(array, kind, info.dtype)

    def write_parameter(self, name, value):
        """Sets a parameter that training steps update."""
        tensor = native.Tensor()
        held = tensors.fill(tensor, value, "float32")
        with self._open():
            check(lib.partita_write_parameter(self._handle, name.encode(), ctypes.byref(tensor)))
        del held

    def save_checkpoint(self, folder):
        """Saves parameters, optimizer states and the step number in a new folder below `folder`. Keeps the newest three."""
        with self._open():
            check(lib.partita_save_checkpoint(self._handle, os.fsencode(folder)))

    def load_checkpoint(self, folder):
        """Loads the newest complete checkpoint below `folder`, saved under any plan."""
        with self._open():
            check(lib.partita_load_checkpoint(self._handle, os.fsencode(folder)))

    # --- Closing ---

    def close(self):
        """Releases all memory. A forked process leaves that to the process that opened the session."""
        if os.getpid() != self._process:
            self._handle = ctypes.c_void_p()  # without the lock, which a thread of the other process may have held
            return
        with self._lock:
            if self._handle:
                lib.partita_close(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_lock", None) is not None:
            self.close()

    # --- Inside ---

    def _tensor(self, function, index):
        info = native.Info()
        check(function(self._handle, index, ctypes.byref(info)))
        role = _ROLES[info.role] if info.role < len(_ROLES) else "data"
        return TensorInfo(role=role, limit=info.limit, **_describe(info))

    @contextlib.contextmanager
    def _open(self):
        """Holds the lock of an open session of this process."""
        if os.getpid() != self._process:  # before the lock, which a thread of the other process may have held
            raise errors.UnavailableError(
                "expected the process that opened the session, found one that was forked from it; open %s in each process, or start "
                "processes with the method spawn" % self.path)
        with self._lock:
            if not self._handle:
                raise errors.InvalidError("expected an open session, found a closed one; open %s again" % self.path)
            yield

    def _prepare(self):
        """Tensors for calls with numpy arrays of the right type: only their addresses change."""
        self._shapes = [(ctypes.c_int64 * max(1, len(info.shape)))(*info.shape) for info in self.inputs + self.outputs]
        array = (native.Tensor * max(1, len(self._shapes)))()
        for i, (info, shape) in enumerate(zip(self.inputs + self.outputs, self._shapes)):
            code = tensors.CODES[info.dtype]
            array[i] = native.Tensor(None, native.Device(1, 0), len(info.shape), native.Type(code[0], code[1], 1), shape, None, 0)
        self._array = array
        self._each = [array[i] for i in range(len(self._shapes))]
        self._first_input = ctypes.addressof(array)
        self._first_output = self._first_input + len(self.inputs) * ctypes.sizeof(native.Tensor)
        self._fast = None  # numpy's dtypes of inputs and outputs, once numpy is there

    def _numpy_types(self, numpy):
        if self._fast is None:
            types = [tensors.numpy_dtype(info.dtype) for info in self.inputs + self.outputs]
            self._fast = [] if None in types else [
                (each, numpy.dtype(dtype), info.shape) for each, dtype, info in zip(self._each, types, self.inputs + self.outputs)]
        return self._fast

    def _run(self, values):
        with self._open():
            numpy = sys.modules.get("numpy")
            if numpy is not None and all(type(value) is numpy.ndarray for value in values):  # pylint: disable=unidiomatic-typecheck
                fast = self._numpy_types(numpy)
                if fast and self._set_inputs(fast, values):
                    return self._run_on_numpy(fast)
            return self._run_on_any(values)

    @staticmethod
    def _set_inputs(fast, values):
        """False if an array is not as it must be: _run_on_any makes it so, or says what is wrong."""
        for (tensor, dtype, shape), value in zip(fast, values):
            if value.dtype != dtype or value.shape != shape or not value.flags.c_contiguous:
                return False
            tensor.data = value.__array_interface__["data"][0]
        return True

    def _run_on_numpy(self, fast):
        results = []
        for tensor, dtype, shape in fast[len(self.inputs):]:
            array = tensors.new_numpy(shape, dtype)
            tensor.data = array.__array_interface__["data"][0]
            results.append(array)
        check(lib.partita_run(self._handle, self._first_input, len(self.inputs), self._first_output, len(self.outputs)))
        return results

    def _run_on_any(self, values):
        kinds = [tensors.kind_of(value) for value in values]
        kind = next((each for each in kinds if each in ("numpy", "torch", "jax")), "numpy")
        inputs, held = self._tensors_of(values, self.inputs)
        if kind == "numpy":
            arrays = [tensors.new_like(kind, info.shape, info.dtype) for info in self.outputs]
            for tensor, array in zip(self._each[len(self.inputs):], arrays):
                tensor.data = array.__array_interface__["data"][0]
            check(lib.partita_run(self._handle, inputs, len(values), self._first_output, len(self.outputs)))
            del held
            return [tensors.finish(array, kind, info.dtype) for array, info in zip(arrays, self.outputs)]
        owned = []
        try:
            outputs = (native.Tensor * max(1, len(self.outputs)))()
            for i in range(len(self.outputs)):
                managed = ctypes.POINTER(native.ManagedTensor)()
                check(lib.partita_new_output(self._handle, i, ctypes.byref(managed)))
                owned.append(managed)
                outputs[i] = managed.contents.tensor
            check(lib.partita_run(self._handle, inputs, len(values), outputs, len(self.outputs)))
        except BaseException:
            for managed in owned:
                managed.contents.deleter(managed)
            raise
        del held
        results = []
        try:
            for managed in owned:
                results.append(tensors.take(managed, kind))
        except BaseException:
            for managed in owned[len(results) + 1:]:
                managed.contents.deleter(managed)
            raise
        return results

    @staticmethod
    def _tensors_of(values, infos):
        array, held = (native.Tensor * max(1, len(values)))(), []
        for i, (value, info) in enumerate(zip(values, infos)):
            held.append(tensors.fill(array[i], value, info.dtype))
        return array, held

    @staticmethod
    def _in_order(feeds, infos):
        unknown = [name for name in feeds if all(name != info.name for info in infos)]
        missing = [info.name for info in infos if info.name not in feeds]
        if unknown or missing:
            raise errors.InvalidError("expected the inputs %s, found %s" % (
                ", ".join(map(repr, infos)) or "none", ", ".join(sorted(feeds)) or "none"))
        return [feeds[info.name] for info in infos]

    def _merge(self, values, feeds, infos):
        if not values:
            return self._in_order(feeds, infos)
        if len(values) + len(feeds) > len(infos):
            raise errors.InvalidError("expected %d inputs (%s), found %d" % (
                len(infos), ", ".join(map(repr, infos)), len(values) + len(feeds)))
        return list(values) + self._in_order(feeds, infos[len(values):])

    def _output_index(self, name):
        for i, info in enumerate(self.outputs):
            if info.name == name:
                return i
        raise errors.MissingError("expected an output of %s, found '%s'" % (", ".join(info.name for info in self.outputs), name))


def _encoded(text):
    return None if text is None else os.fsencode(text)
