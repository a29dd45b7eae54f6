"""Makes the package of this checkout importable, with Debian's numpy. Tests import this module first.

The tests run without site packages (python3 -S), in the folder of runfiles. In an environment of tests/peers, numpy is the environment's.
"""

import json
import os
import struct
import sys

sys.path.insert(0, os.path.abspath("frontends/python"))
if sys.flags.no_site:
    sys.path.insert(1, "/usr/lib/python3/dist-packages")
os.environ["PARTITA_RUNTIME_LIBRARY"] = os.path.abspath("runtime/api/libpartita_runtime.so")
os.environ["PARTITA_COMPILER_LIBRARY"] = os.path.abspath("compiler/api/libpartita_compiler.so")

import numpy  # pylint: disable=wrong-import-position

DATA = os.path.abspath("tests/data/onnx-tiny")
FOLDED = os.path.abspath("tests/data/onnx-folded")
TYPES = {"F32": "float32", "I64": "int64", "F64": "float64", "I32": "int32"}


def golden(model):
    """{name: array} of io.safetensors: PyTorch's inputs (in.*) and outputs (out.*), losses and parameters after a step.

    model: a folder of DATA, or FOLDED.
    """
    with open(os.path.join(DATA, model, "io.safetensors"), "rb") as file:
        content = file.read()
    size, = struct.unpack("<Q", content[:8])
    arrays = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            arrays[name] = numpy.frombuffer(content[8 + size:][begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def targets(model):
    with open(os.path.join(DATA, model, "targets.json"), encoding="utf-8") as file:
        return numpy.array(json.load(file)["targets"], "int64")
