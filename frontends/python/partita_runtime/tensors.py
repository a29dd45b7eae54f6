"""Tensors of numpy, torch and jax as DLPack tensors, and back. Imports none of the three before the caller has.

Memory is never copied on the way in, except to make an array contiguous. bf16 is read from the DLPack capsule, since numpy's own
DLPack refuses it.
"""

import ctypes
import sys

from . import errors, native

# DLPack's (code, bits): name of the element type.
NAMES = {(2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16", (6, 8): "bool"}
NAMES.update({(0, bits): "int%d" % bits for bits in (8, 16, 32, 64)})
NAMES.update({(1, bits): "uint%d" % bits for bits in (8, 16, 32, 64)})
CODES = {name: code for code, name in NAMES.items()}

_CAPSULE = b"dltensor"
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def kind_of(value):
    """"numpy", "torch", "jax", "dlpack" for other tensors, or None for values such as lists."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return "numpy"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return "torch"
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.Array):
        return "jax"
    return "dlpack" if hasattr(value, "__dlpack__") else None


def numpy_dtype(name):
    """numpy's dtype of an element type; None for bfloat16 without the package ml_dtypes."""
    import numpy  # pylint: disable=import-outside-toplevel
    if name != "bfloat16":
        return numpy.dtype(name)
    try:
        import ml_dtypes  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    return numpy.dtype(ml_dtypes.bfloat16)


def fill(tensor, value, dtype):
    """Sets the DLTensor `tensor` to the memory of `value`. Returns an object to hold while `tensor` is in use.

    `dtype` is the element type that a value without one, such as a list, becomes.
    """
    kind = kind_of(value)
    if kind is None:
        value, kind = _as_numpy(value, dtype), "numpy"
    if kind == "jax":
        value, kind = _from_jax(value, dtype)
    if kind == "numpy":
        return _fill_from_numpy(tensor, value)
    if kind == "torch":
        value = value.detach()
        if not value.is_contiguous():
            value = value.contiguous()
    capsule = value.__dlpack__()
    managed = ctypes.cast(_get_pointer(capsule, _CAPSULE), ctypes.POINTER(native.ManagedTensor))
    ctypes.memmove(ctypes.byref(tensor), ctypes.byref(managed.contents.tensor), ctypes.sizeof(native.Tensor))
    return capsule, value


def is_floating(value):
    """True for a tensor of floating-point numbers, and for a value without an element type, such as a list."""
    return "float" in str(getattr(value, "dtype", "float"))


def is_same(first, second, dtype):
    """True if two tensors have the same type, shape and bits. `dtype` is as for fill."""
    a, b = native.Tensor(), native.Tensor()
    held = fill(a, first, dtype), fill(b, second, dtype)
    shapes = [tuple(each.shape[i] for i in range(each.ndim)) for each in (a, b)]
    types = [(each.type.code, each.type.bits) for each in (a, b)]
    if shapes[0] != shapes[1] or types[0] != types[1]:
        return False
    count = types[0][1] // 8
    for size in shapes[0]:
        count *= size
    contents = [ctypes.string_at(each.data + each.byte_offset, count) if count else b"" for each in (a, b)]
    del held
    return contents[0] == contents[1]


def _from_jax(value, dtype):
    """(the array, its kind). An array divided over devices is copied to one, and int32 widens: JAX has no int64 unless jax_enable_x64 is set."""
    if len(value.devices()) == 1 and (dtype, str(value.dtype)) != ("int64", "int32"):
        return value, "jax"
    import numpy  # pylint: disable=import-outside-toplevel
    array = numpy.asarray(value)
    return (array.astype(dtype) if array.dtype.name == "int32" and dtype == "int64" else array), "numpy"


def _as_numpy(value, dtype):
    import numpy  # pylint: disable=import-outside-toplevel
    array = numpy.asarray(value)
    wanted = numpy_dtype(dtype)
    if wanted is None or not numpy.can_cast(array.dtype, wanted, casting="same_kind"):
        raise errors.InvalidError("expected an array, or numbers that become %s, found %s" % (dtype, array.dtype))
    return array.astype(wanted)


def _fill_from_numpy(tensor, array):
    code = CODES.get(array.dtype.name)
    if code is None or not array.dtype.isnative:
        raise errors.InvalidError("expected an array of numbers in the machine's byte order, found dtype %s" % array.dtype)
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor.data = array.__array_interface__["data"][0]
    tensor.device.type, tensor.device.id = 1, 0
    tensor.ndim = array.ndim
    tensor.type.code, tensor.type.bits, tensor.type.lanes = code[0], code[1], 1
    tensor.shape = shape
    tensor.strides = None
    tensor.byte_offset = 0
    return array, shape


def new_numpy(shape, dtype):
    """An array whose memory begins at a multiple of 64 bytes, which the runtime uses in place."""
    import numpy  # pylint: disable=import-outside-toplevel
    dtype = numpy.dtype(dtype)
    count = 1
    for size in shape:
        count *= size
    memory = numpy.empty(count * dtype.itemsize + 64, numpy.uint8)
    begin = -memory.__array_interface__["data"][0] % 64
    return memory[begin:begin + count * dtype.itemsize].view(dtype).reshape(shape)


def new_like(kind, shape, dtype):
    """A new tensor of `kind`, to be filled; numpy for all kinds but torch."""
    if kind == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype))
    wanted = numpy_dtype(dtype)
    return new_numpy(shape, "uint16" if wanted is None else wanted)


def finish(array, kind, dtype):
    """Turns a filled tensor of new_like into what the caller gets.

    numpy has no bfloat16 without the package ml_dtypes: such values become float32, which holds all of them.
    """
    if kind == "jax":
        import jax.numpy  # pylint: disable=import-outside-toplevel
        return jax.numpy.array(array)
    if dtype == "bfloat16" and kind != "torch" and array.dtype.name == "uint16":
        import numpy  # pylint: disable=import-outside-toplevel
        return (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return array


class _Capsule:
    """Hands out one capsule, in the form that from_dlpack functions take."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def take(managed, kind):
    """Turns a managed tensor (a pointer that partita_new_output gave) into a tensor of `kind`, without a copy."""
    capsule = _new_capsule(ctypes.cast(managed, ctypes.c_void_p), _CAPSULE, None)
    try:
        if kind == "torch":
            return sys.modules["torch"].from_dlpack(_Capsule(capsule))
        import jax.dlpack  # pylint: disable=import-outside-toplevel
        return jax.dlpack.from_dlpack(_Capsule(capsule))
    except BaseException:
        if _is_valid(capsule, _CAPSULE):
            managed.contents.deleter(managed)
        raise
