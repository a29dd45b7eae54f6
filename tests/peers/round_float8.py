"""Rounds every bf16 number to the two formats of 8 bits with ml_dtypes.

Writes tests/data/float8/rounded.safetensors, which tests of the runtime and of
generated code compare with. With --torch, compares PyTorch's casts with the
file instead. They differ only where a number is too large: PyTorch takes the
largest number of the format, and ml_dtypes a NaN (e4m3) or an infinity (e5m2).
It also writes linear.safetensors: a linear layer and its gradients, whose
factors PyTorch rounded.

    python tests/peers/round_float8.py
    python tests/peers/round_float8.py --torch
"""
import json
import struct
import sys

import numpy

PATH = "tests/data/float8/rounded.safetensors"
LINEAR = "tests/data/float8/linear.safetensors"
FORMATS = {"e4m3": ("F8_E4M3", "float8_e4m3fn"), "e5m2": ("F8_E5M2", "float8_e5m2")}


def bf16_numbers():
    """All 65536 bit patterns as f32."""
    return (numpy.arange(65536, dtype=numpy.uint32) << 16).view(numpy.float32)


def tables_of_ml_dtypes():
    import ml_dtypes

    with numpy.errstate(all="ignore"):
        return {
            name: bf16_numbers().astype(getattr(ml_dtypes, dtype)).view(numpy.uint8)
            for name, (_, dtype) in FORMATS.items()
        }


def write_file(path, tensors):
    """tensors: name -> (safetensors type, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write(tables):
    write_file(PATH, {name: (FORMATS[name][0], [65536], table.tobytes()) for name, table in tables.items()})


def write_linear():
    """y = x w, and the gradients of sum(y g). Each factor has one scale: the largest power of two with nothing too large."""
    import torch

    def rounded(x, dtype):
        scale = 2.0 ** torch.floor(torch.log2(torch.finfo(dtype).max / x.abs().max().double()))
        return (x.double() * scale).float().to(dtype).double() / scale

    torch.manual_seed(3)
    x, w, g = (torch.randn(shape).mul(size).bfloat16() for shape, size in (((32, 48), 3), ((48, 64), 0.02), ((32, 64), 1e-4)))
    x8, w8, g8 = rounded(x, torch.float8_e4m3fn), rounded(w, torch.float8_e4m3fn), rounded(g, torch.float8_e5m2)
    tensors = {"x": x, "w": w, "g": g, "y": x8 @ w8, "grad.x": g8 @ w8.T, "grad.w": x8.T @ g8}
    write_file(LINEAR, {n: ("F32", list(t.shape), t.float().contiguous().numpy().tobytes()) for n, t in tensors.items()})


def compare_torch():
    import torch

    data = open(PATH, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    numbers = torch.from_numpy(bf16_numbers().copy()).to(torch.bfloat16)
    for i, (name, (_, dtype)) in enumerate(FORMATS.items()):
        kind = getattr(torch, dtype)
        stored = torch.from_numpy(numpy.frombuffer(data, numpy.uint8, 65536, start + i * 65536).copy())
        stored = stored.view(kind).float().numpy()
        found = numbers.to(kind).float().numpy()
        too_large = numpy.isfinite(bf16_numbers()) & ~numpy.isfinite(stored)
        too_large |= numpy.isinf(bf16_numbers())
        numpy.testing.assert_array_equal(found[~too_large], stored[~too_large], err_msg=name)
        print(f"{name}: {(~too_large).sum()} equal; {too_large.sum()} are too large")


if __name__ == "__main__":
    if "--torch" in sys.argv[1:]:
        compare_torch()
        write_linear()
    else:
        write(tables_of_ml_dtypes())
