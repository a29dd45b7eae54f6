"""The functions of libpartita_runtime.so. partita.h describes them; the structures here have its layout."""

import ctypes
import os

from . import errors

ABI_VERSION = 1

c_size, c_int32, c_int64, c_char_p, c_void_p = ctypes.c_size_t, ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p


class Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", c_void_p), ("device", Device), ("ndim", c_int32), ("type", Type), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", ctypes.c_uint64)]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(ManagedTensor))
ManagedTensor._fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", DELETER)]


class Options(ctypes.Structure):
    _fields_ = [("abi_version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("weights_dir", c_char_p), ("device", c_char_p),
                ("threads", c_int32), ("join_job", c_int32), ("timeout_seconds", ctypes.c_double), ("seed", c_int64)]


class Info(ctypes.Structure):
    """partita_tensor_info."""
    _fields_ = [("name", c_char_p), ("shape", ctypes.POINTER(c_int64)), ("ndim", c_int32), ("type", Type), ("role", ctypes.c_int),
                ("bytes", c_int64), ("limit", c_int64)]


class ParameterInfo(ctypes.Structure):
    """partita_parameter_info."""
    _fields_ = [("name", c_char_p), ("shape", ctypes.POINTER(c_int64)), ("ndim", c_int32), ("type", Type), ("bytes", c_int64),
                ("is_state", c_int32), ("is_updated", c_int32)]


class Tokens(ctypes.Structure):
    """partita_tokens."""
    _fields_ = [("ids", ctypes.POINTER(c_int64)), ("count", c_size)]

    @classmethod
    def of(cls, ids):
        """Keeps the memory of `ids`, a list of integers."""
        array = (c_int64 * len(ids))(*ids)
        tokens = cls(ctypes.cast(array, ctypes.POINTER(c_int64)), len(ids))
        tokens.array = array
        return tokens

    def list(self):
        return self.ids[:self.count]


class GeneratorInfo(ctypes.Structure):
    """partita_generator_info."""
    _fields_ = [("rows", c_int64), ("length", c_int64), ("vocabulary", c_int64), ("end", Tokens), ("tokenizer", c_char_p)]


TOKEN_CALLBACK = ctypes.CFUNCTYPE(c_int32, c_size, Tokens, c_void_p)


class GenerateOptions(ctypes.Structure):
    """partita_generate_options."""
    _fields_ = [("abi_version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("max_new_tokens", c_int64),
                ("repetition_penalty", ctypes.c_double), ("temperature", ctypes.c_double), ("top_k", c_int64), ("top_p", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("end", Tokens), ("callback", TOKEN_CALLBACK), ("user", c_void_p)]


class GenerateTimes(ctypes.Structure):
    """partita_generate_times."""
    _fields_ = [("first_token_seconds", ctypes.c_double), ("prompt_seconds", ctypes.c_double), ("token_seconds", ctypes.c_double)]


STATUS, POINTER = ctypes.c_int, ctypes.POINTER
# Name: (result, arguments). Sessions are opaque pointers.
FUNCTIONS = {
    "partita_abi_version": (ctypes.c_uint32, []),
    "partita_version": (c_char_p, []),
    "partita_last_error": (c_char_p, []),
    "partita_open": (STATUS, [c_char_p, POINTER(Options), POINTER(c_void_p)]),
    "partita_close": (None, [c_void_p]),
    "partita_device_count": (c_int32, [c_void_p]),
    "partita_rank": (c_int32, [c_void_p]),
    "partita_input_count": (c_size, [c_void_p]),
    "partita_output_count": (c_size, [c_void_p]),
    "partita_input": (STATUS, [c_void_p, c_size, POINTER(Info)]),
    "partita_output": (STATUS, [c_void_p, c_size, POINTER(Info)]),
    "partita_new_output": (STATUS, [c_void_p, c_size, POINTER(POINTER(ManagedTensor))]),
    "partita_run": (STATUS, [c_void_p, c_void_p, c_size, c_void_p, c_size]),
    "partita_train_step": (STATUS, [c_void_p, c_void_p, c_size, ctypes.c_double, POINTER(ctypes.c_double)]),
    "partita_step": (c_int64, [c_void_p]),
    "partita_parameter_count": (c_size, [c_void_p]),
    "partita_parameter": (STATUS, [c_void_p, c_size, POINTER(ParameterInfo)]),
    "partita_read_parameter": (STATUS, [c_void_p, c_char_p, POINTER(Tensor)]),
    "partita_write_parameter": (STATUS, [c_void_p, c_char_p, POINTER(Tensor)]),
    "partita_save_checkpoint": (STATUS, [c_void_p, c_char_p]),
    "partita_load_checkpoint": (STATUS, [c_void_p, c_char_p]),
    "partita_open_generator": (STATUS, [c_char_p, POINTER(Options), POINTER(c_void_p)]),
    "partita_close_generator": (None, [c_void_p]),
    "partita_describe_generator": (STATUS, [c_void_p, POINTER(GeneratorInfo)]),
    "partita_generate": (STATUS, [c_void_p, POINTER(Tokens), c_size, POINTER(GenerateOptions), POINTER(Tokens), POINTER(GenerateTimes)]),
}


def open_library(name, variable, module, wheel):
    """Opens the library that the environment variable names, else lib/NAME beside the file `module` of an installed wheel."""
    path = os.environ.get(variable) or os.path.join(os.path.dirname(os.path.abspath(module)), "lib", name)
    if not os.path.exists(path):
        raise errors.MissingError("expected the library %s, found none; install the wheel %s, or set %s" % (path, wheel, variable))
    return ctypes.CDLL(path)


def _load():
    library = open_library("libpartita_runtime.so.1", "PARTITA_RUNTIME_LIBRARY", __file__, "partita-runtime")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.partita_abi_version() != ABI_VERSION:
        raise errors.InvalidError("expected libpartita_runtime with ABI version %d, found version %d; install partita and partita-runtime "
                                  "of one release" % (ABI_VERSION, library.partita_abi_version()))
    return library


lib = _load()


def check(status):
    """Raises the exception of a status that is not PARTITA_OK."""
    if status:
        raise errors.BY_STATUS.get(status, errors.InternalError)(lib.partita_last_error().decode())
