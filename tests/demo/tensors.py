"""Reads float32 tensors from .npy and .safetensors files, and compares them."""

import array
import json
import struct

# Two float32 results are equal within these tolerances; see tests/data/README.md.
RELATIVE, ABSOLUTE = 1e-4, 1e-5


def read_npy(path):
    """All elements of a float32 array, row-major."""
    with open(path, "rb") as file:
        content = file.read()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    if content[:6] != b"\x93NUMPY" or b"'<f4'" not in content[:begin]:
        raise ValueError("%s: expected a .npy file of float32, found another type or format" % path)
    return array.array("f", content[begin:])


def read_safetensors(path, name):
    """All elements of the float32 tensor `name`, row-major."""
    with open(path, "rb") as file:
        content = file.read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    tensor = json.loads(content[8:begin])[name]
    if tensor["dtype"] != "F32":
        raise ValueError("%s: %s: expected F32, found %s" % (path, name, tensor["dtype"]))
    first, last = tensor["data_offsets"]
    return array.array("f", content[begin + first:begin + last])


def compare(actual, expected):
    """(largest absolute difference, whether all elements are equal within the tolerances).

    Tensors of different size, without elements or with NaN are not equal.
    """
    if len(actual) != len(expected) or not actual:
        return float("inf"), False
    differences = [abs(a - b) for a, b in zip(actual, expected)]
    return max(differences), all(d <= ABSOLUTE + RELATIVE * abs(b) for d, b in zip(differences, expected))
