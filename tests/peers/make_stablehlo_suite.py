"""Makes the programs of JAX's own test suite of operations, with JAX's results. Needs `setup.sh --jax`.

usage: make_stablehlo_suite.py FOLDER [NAME...]: all groups, or those named. FOLDER gets a safetensors file per group of programs.
       make_stablehlo_suite.py --share FOLDER SHARE: writes a fixed share of the groups in FOLDER, as in tests/data/stablehlo-suite.

The programs are the harnesses of jax._src.internal_test_util.test_harnesses, from which openxla/stablehlo makes its stablehlo/testdata; the
names are the same. In a file, NAME|program is the portable artifact without locations, NAME|in.I and NAME|out.I are the tensors.
"""

import collections
import pathlib
import sys
import zlib

import jax
import numpy
import safetensors.numpy
from jax import export
from jax._src.internal_test_util import test_harnesses
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

VERSION = "1.15.0"
# The share: small programs, and at most this many of a group.
SHARE_BYTES = 1500
SHARE_OF_GROUP = 3
# Groups whose loops run until a series has converged: all their programs are in the share.
LOOPS = ("igamma", "igammac", "random_gamma", "regularized_incomplete_beta")


def bytecode(exported):
    with mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())  # text has no locations
        return stablehlo.serialize_portable_artifact(module, VERSION, True)


def plain(value):
    """As numpy writes it: typed keys as their bits."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return numpy.require(numpy.asarray(value), requirements="C")


def is_open(harness):
    """True if StableHLO leaves the results open: an unstable sort may order what belongs to equal keys in any way."""
    return harness.group_name == "sort" and "multiple_arrays" in harness.name and not harness.params["is_stable"]


def tensors_of(harness):
    """The tensors of one program; none if JAX itself lacks it."""
    if not harness.filter("cpu") or is_open(harness):
        return None
    arguments = harness.dyn_args_maker(numpy.random.RandomState(zlib.crc32(harness.fullname.encode())))
    arguments = [jax.numpy.asarray(a) if isinstance(a, (bool, int, float, complex)) else a for a in arguments]
    jitted = jax.jit(harness.dyn_fun)
    try:
        exported = export.export(jitted, disabled_checks=[export.DisabledSafetyCheck.custom_call(n) for n in ("mu", "")])(*arguments)
        expected = jax.tree.leaves(jitted(*arguments))
    except Exception as problem:  # pylint: disable=broad-except
        print(f"left out: {harness.fullname}: {type(problem).__name__} {str(problem).splitlines()[0][:100]}", flush=True)
        return None
    leaves = jax.tree.leaves(jax.tree.map(jax.numpy.asarray, arguments))  # 32 bits instead of 64, as the program has it
    tensors = {"program": numpy.frombuffer(bytecode(exported), numpy.uint8)}
    for i, kept in enumerate(exported.module_kept_var_idx):
        tensors[f"in.{i}"] = plain(leaves[kept])
    for i, value in enumerate(expected):
        tensors[f"out.{i}"] = plain(value)
    return tensors


def programs_of(harnesses):
    """Programs by name; equal programs with equal tensors once."""
    programs, seen = {}, set()
    for harness in harnesses:
        tensors = tensors_of(harness)
        if not tensors or any(t.dtype.name.startswith("complex128") for t in tensors.values()):
            continue
        key = tuple((name, value.dtype.name, value.shape, value.tobytes()) for name, value in tensors.items())
        if key not in seen:
            seen.add(key)
            programs[harness.fullname] = tensors
    return programs


def share_of(programs):
    """Small programs of a group, of different types before others of the same type, in an order that does not change."""
    count, ranked = collections.Counter(), []
    for name, tensors in sorted(programs.items(), key=lambda item: zlib.crc32(item[0].encode())):
        kind = next((t.dtype.name for key, t in tensors.items() if key != "program"), "")
        if sum(t.nbytes for t in tensors.values()) <= SHARE_BYTES:
            ranked.append((kind.startswith("complex"), count[kind], len(ranked), name))
            count[kind] += 1
    return {name: programs[name] for *_, name in sorted(ranked)[:SHARE_OF_GROUP]}


def read(path):
    programs = collections.defaultdict(dict)
    for key, value in safetensors.numpy.load_file(path).items():
        name, part = key.rsplit("|", 1)
        programs[name][part] = value
    return programs


def write_share(source, folder):
    files = collections.defaultdict(dict)
    for path in sorted(source.glob("*.safetensors")):
        if path.stem in LOOPS:
            files["loops"].update(read(path))
        else:
            files["operations_a_m" if path.name < "n" else "operations_n_z"].update(share_of(read(path)))
    for name, programs in files.items():
        write(folder / f"{name}.safetensors", programs)
        print(f"{name}: {len(programs)} programs")


def write(path, programs):
    flat = {f"{name}|{key}": value for name, tensors in programs.items() for key, value in tensors.items()}
    safetensors.numpy.save_file(flat, path)


def main():
    shares = sys.argv[1] == "--share"
    folder, *wanted = sys.argv[2:] if shares else sys.argv[1:]
    folder = pathlib.Path(folder)
    if shares:
        write_share(folder, pathlib.Path(wanted[0]))
        return
    folder.mkdir(parents=True, exist_ok=True)
    groups = collections.defaultdict(list)
    for harness in test_harnesses.all_harnesses:
        if not wanted or harness.group_name in wanted:
            groups[harness.group_name].append(harness)
    for group, harnesses in sorted(groups.items(), key=lambda item: len(item[1])):
        programs = programs_of(harnesses)
        if programs:
            write(folder / f"{group}.safetensors", programs)
        print(f"{group}: {len(programs)} programs", flush=True)


if __name__ == "__main__":
    main()
