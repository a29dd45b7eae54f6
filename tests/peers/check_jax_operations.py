"""Compares single operations with JAX: each as a program of its own, over element types, shapes and attributes.

Usage: check_jax_operations.py PARTITA PARTITA_RUN [NAME...]. Needs `setup.sh --jax`. Prints, for each operation, how many programs ran,
how many results equal JAX's, and how many were refused, with the reason. Exits 1 if a result differs or a program fails without being
refused. Integers and booleans must be equal; floats within the rounding of their type.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy
import safetensors.numpy
from jax import export, lax

FLOATS = (jnp.float32, jnp.float16, jnp.bfloat16)
SIGNED = (jnp.int8, jnp.int16, jnp.int32)
UNSIGNED = (jnp.uint8, jnp.uint16, jnp.uint32)
INTEGERS = SIGNED + UNSIGNED
TOLERANCE = {"float32": 2e-5, "float16": 3e-3, "bfloat16": 2e-2}
CASES = []


def values(dtype, *shape, seed=0, low=-3.0, high=3.0):
    generator = numpy.random.default_rng(seed + sum(shape))
    if dtype == jnp.bool_:
        return jnp.asarray(generator.integers(0, 2, shape), dtype)
    if jnp.issubdtype(dtype, jnp.integer):
        low = 0 if jnp.issubdtype(dtype, jnp.unsignedinteger) else -100
        return jnp.asarray(generator.integers(low, 100, shape), dtype)
    return jnp.asarray(generator.uniform(low, high, shape), dtype)


def case(name, function, *arguments):
    CASES.append((name, function, arguments))


def add_elementwise():
    everywhere = ("abs", "neg", "sign", "square")
    for dtype in FLOATS:
        x = values(dtype, 3, 5)
        for name in everywhere + ("cbrt", "ceil", "cos", "exp", "exp2", "expm1", "floor", "is_finite", "logistic", "round", "sin", "tan", "tanh",
                                  "erf", "erfc", "asinh", "atan"):
            case(name, getattr(lax, name), x)
        positive = values(dtype, 3, 5, low=0.1)
        for name in ("log", "log1p", "rsqrt", "sqrt", "digamma", "lgamma"):
            case(name, getattr(lax, name), positive)
        inside = values(dtype, 3, 5, low=-0.9, high=0.9)
        for name in ("acos", "asin", "atanh", "erf_inv"):
            case(name, getattr(lax, name), inside)
        case("pow", lax.pow, positive, x)
        case("atan2", lax.atan2, x, positive)
        case("nextafter", lax.nextafter, x, positive)
        case("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), x)
        case("reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), x)
    for dtype in INTEGERS:
        x = values(dtype, 3, 5)
        for name in everywhere if dtype in SIGNED else ("sign",):
            case(name, getattr(lax, name), x)
        for name in ("bitwise_not", "clz", "population_count"):
            case(name, getattr(lax, name), x)
        shift = values(dtype, 3, 5, seed=1) % jnp.asarray(12, dtype)
        for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
            case(name, getattr(lax, name), x, abs(shift))
    for dtype in FLOATS + INTEGERS:
        x, y = values(dtype, 3, 5), values(dtype, 3, 5, seed=1)
        y = jnp.where(y == 0, jnp.asarray(1, dtype), y)
        for name in ("add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge"):
            case(name, getattr(lax, name), x, y)
        case("integer_pow", lambda x: lax.integer_pow(x, 3), x)
        case("clamp", lax.clamp, jnp.asarray(1, dtype), x, jnp.asarray(2, dtype))
        case("clamp", lambda x, y: lax.clamp(jnp.minimum(x, y), x, y), x, y)
        case("select_n", lax.select_n, values(jnp.bool_, 3, 5), x, y)
        case("select_n", lax.select_n, jnp.asarray(True), x, y)
    for dtype in INTEGERS + (jnp.bool_,):
        x, y = values(dtype, 3, 5), values(dtype, 3, 5, seed=1)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            case(name, getattr(lax, name), x, y)


def add_conversions():
    everything = FLOATS + INTEGERS + (jnp.bool_,)
    for source in everything:
        x = values(source, 7, low=0.0) if source in FLOATS else abs(values(source, 7)) if source in SIGNED else values(source, 7)
        for target in everything:
            if source != target:
                case("convert", lambda x, target=target: x.astype(target), x)
    for source, target, shape in (
        (jnp.float32, jnp.int32, (3,)), (jnp.uint32, jnp.float32, (3,)), (jnp.float16, jnp.uint16, (3,)), (jnp.int8, jnp.uint8, (3,)),
        (jnp.float32, jnp.uint8, (3, 2)), (jnp.uint32, jnp.uint16, ()), (jnp.uint8, jnp.float32, (3, 4)), (jnp.int16, jnp.int32, (2, 3, 2)),
        (jnp.bfloat16, jnp.float32, (2,))):
        bits = values(jnp.uint8, *shape, jnp.dtype(source).itemsize)
        x = lax.bitcast_convert_type(bits, source) if jnp.dtype(source).itemsize > 1 else lax.bitcast_convert_type(bits[..., 0], source)
        case("bitcast_convert", lambda x, target=target: lax.bitcast_convert_type(x, target), x)


def add_movement():
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int8, jnp.uint32, jnp.bool_):
        x = values(dtype, 3, 4, 5)
        case("transpose", lambda x: x.transpose(2, 0, 1), x)
        case("reshape", lambda x: x.reshape(6, 10), x)
        case("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4, 7, 5), (1, 2, 4)), x)
        case("slice", lambda x: lax.slice(x, (1, 0, 2), (3, 4, 5), (1, 3, 2)), x)
        case("rev", lambda x: lax.rev(x, (0, 2)), x)
        case("concatenate", lambda x: jnp.concatenate([x, x[:, :2], x], 1), x)
        for padding in (((1, 2, 0), (0, 0, 0), (2, 0, 1)), ((-1, 0, 0), (1, -2, 2), (0, 1, 0))):
            case("pad", lambda x, padding=padding: lax.pad(x, jnp.ones((), x.dtype), padding), x)
        case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0, i), (2, 4, 3)), x, jnp.asarray(5))
        case("dynamic_update_slice", lambda x, i: lax.dynamic_update_slice(x, x[:1, :2, :3], (i, i, 0)), x, jnp.asarray(-2))
        ids = jnp.asarray([[2, 0], [1, 7]])
        case("gather", lambda x, ids: x[ids], x, ids)
        case("gather", lambda x, ids: x[:, ids, 1:3], x, ids)
        case("gather", lambda x, ids: x[ids, :, ids], x, ids)
        case("gather", lambda x, ids: jnp.take_along_axis(x, ids[:1, :, None] % 4, 1), x, ids)
        case("gather", lambda x, ids: jnp.take(x, ids, 2, mode="fill", fill_value=1), x, ids)
        for dimension in (0, 2):
            case("sort", lambda x, dimension=dimension: lax.sort(x, dimension=dimension), x)
        case("argsort", lambda x: jnp.argsort(x, 1), x)
        case("select", lambda x: jnp.where(x[:1] == x, x, x[::-1]), x)
    for dtype in (jnp.float32, jnp.int32, jnp.uint8):
        for dimension in (0, 1):
            case("iota", lambda dtype=dtype, dimension=dimension: lax.broadcasted_iota(dtype, (3, 4), dimension))


def add_scatters():
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32, jnp.uint32):
        x, updates, ids = values(dtype, 5, 4), values(dtype, 3, 4, seed=1), jnp.asarray([4, 0, 4])
        for name in ("add", "multiply", "max", "min"):
            case("scatter_" + name, lambda x, ids, u, name=name: getattr(x.at[ids], name)(u), x, ids, updates)
        case("scatter", lambda x, ids, u: x.at[ids[:2]].set(u[:2]), x, ids, updates)
        case("scatter", lambda x, ids, u: x.at[ids[:2], 1:3].set(u[:2, 1:3]), x, ids, updates)
        case("scatter", lambda x, ids, u: x.at[:, ids[:2] % 4].set(u[0, 0]), x, ids, updates)
        case("scatter_add", lambda x, ids, u: x.at[ids + 3].add(u, mode="drop"), x, ids, updates)


def add_reductions():
    for dtype in FLOATS + INTEGERS:
        x = values(dtype, 3, 4, 5, low=0.5, high=1.5)
        for axes in ((0,), (1, 2), (0, 1, 2), ()):
            for name, reduce in (("sum", lax.add), ("prod", lax.mul), ("max", lax.max), ("min", lax.min)):
                init = {"sum": 0, "prod": 1}.get(name)
                if init is None:
                    info = jnp.finfo(dtype) if dtype in FLOATS else jnp.iinfo(dtype)
                    init = info.min if name == "max" else info.max
                case("reduce_" + name, lambda x, reduce=reduce, init=init, axes=axes: lax.reduce(x, jnp.asarray(init, x.dtype), reduce, axes), x)
        for axis in (0, 2):
            case("argmax", lambda x, axis=axis: jnp.argmax(x, axis), x)
            case("argmin", lambda x, axis=axis: jnp.argmin(x, axis), x)
            case("cumsum", lambda x, axis=axis: lax.cumsum(x, axis), x)
            case("cummax", lambda x, axis=axis: lax.cummax(x, axis, reverse=True), x)
        case("top_k", lambda x: lax.top_k(x, 3), x)
    for axes in ((0,), (1, 2)):
        for name, reduce in (("and", lax.bitwise_and), ("or", lax.bitwise_or)):
            case("reduce_" + name, lambda x, reduce=reduce, axes=axes, one=name == "and": lax.reduce(x, jnp.asarray(one), reduce, axes),
                 values(jnp.bool_, 3, 4, 5))
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32):
        x = values(dtype, 2, 9, 8, 3)
        low = -jnp.inf if dtype in FLOATS else jnp.iinfo(dtype).min
        for padding in ("SAME", "VALID", ((0, 0), (1, 2), (0, 1), (0, 0))):
            for name, reduce, init in (("sum", lax.add, 0), ("max", lax.max, low)):
                for dilation in (1, 2):
                    case("reduce_window_" + name, lambda x, reduce=reduce, init=init, padding=padding, dilation=dilation: lax.reduce_window(
                        x, jnp.asarray(init, x.dtype), reduce, (1, 3, 2, 1), (1, 2, 1, 1), padding, window_dilation=(1, dilation, 1, 1)), x)
    pooled = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    case("select_and_scatter", jax.grad(lambda x: (pooled(x) ** 2).sum()), values(jnp.float32, 2, 9, 8, 3))


def add_contractions():
    for dtype in FLOATS + (jnp.int8, jnp.int32, jnp.uint32):
        x, y = values(dtype, 4, 3, 5), values(dtype, 3, 5, 4, seed=1)
        for contract, batch in ((((2,), (1,)), ((0,), (2,))), (((1, 2), (0, 1)), ((), ())), (((1,), (0,)), ((), ())), (((), ()), ((0, 1), (2, 0)))):
            case("dot_general", lambda x, y, d=(contract, batch): lax.dot_general(x, y, d), x, y)
        if dtype in (jnp.int8, jnp.bfloat16):
            wide = jnp.int32 if dtype == jnp.int8 else jnp.float32
            case("dot_general", lambda x, y, wide=wide: lax.dot_general(x, y, (((2,), (1,)), ((), ())), preferred_element_type=wide), x, y)
    for dtype in (jnp.float32, jnp.bfloat16):
        x, w = values(dtype, 2, 9, 8, 4), values(dtype, 3, 2, 4, 6, seed=1)
        for options in (dict(), dict(window_strides=(2, 1)), dict(rhs_dilation=(1, 2)), dict(lhs_dilation=(2, 1)), dict(padding=((1, -1), (0, 2)))):
            options = {"window_strides": (1, 1), "padding": "SAME", **options}
            if "lhs_dilation" in options:
                options["padding"] = "VALID"
            case("convolution", lambda x, w, options=options: lax.conv_general_dilated(
                x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options), x, w)
        case("convolution", lambda x, w: lax.conv_general_dilated(x, w[:, :, :2], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                                                 feature_group_count=2), x, w)
        case("convolution", lambda x, w: lax.conv_general_dilated(x[:, :, 0], w[:, 0], (2,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")), x, w)
        case("convolution", jax.grad(lambda w, x: (lax.conv_general_dilated(
            x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum().astype(jnp.float32)), w, x)


def add_control():
    x = values(jnp.float32, 3, 4)
    case("while", lambda x: lax.fori_loop(0, 4, lambda i, y: y * 0.5 + i, x), x)
    case("scan", lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x), x)
    case("scan", lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True), x)
    case("cond", lambda x, i: lax.cond(i > 0, lambda x: x + 1, lambda x: x * 2, x), x, jnp.asarray(1))
    case("switch", lambda x, i: lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x), x, jnp.asarray(7))
    key = jnp.asarray([1, 2, 3, 4], jnp.uint32)
    for algorithm in (lax.RandomAlgorithm.RNG_PHILOX, lax.RandomAlgorithm.RNG_THREE_FRY):
        for dtype in UNSIGNED:
            for shape in ((), (3,), (2, 5), (3, 7)):
                case("rng_bit_generator", lambda key, shape=shape, dtype=dtype, algorithm=algorithm: lax.rng_bit_generator(
                    key, shape, dtype, algorithm), key)
    case("fft", lambda x: jnp.abs(jnp.fft.fft(x)), x)
    case("cholesky", lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(3)), x)


def plain(array):
    array = numpy.asarray(array)
    return array.astype(numpy.float32) if array.dtype.name == "bfloat16" else array


def difference(found, expected):
    """Empty if the results are equal."""
    kind = jnp.asarray(expected).dtype.name
    expected = plain(expected)
    if found.dtype == numpy.uint16 and kind == "bfloat16":
        found = (found.astype(numpy.uint32) << 16).view(numpy.float32)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if kind not in TOLERANCE:
        return "" if numpy.array_equal(found, expected) else "other numbers"
    found, expected = found.astype(numpy.float64), expected.astype(numpy.float64)
    scale = numpy.max(numpy.abs(expected), initial=1, where=numpy.isfinite(expected))
    if numpy.allclose(found, expected, TOLERANCE[kind], TOLERANCE[kind] * scale, equal_nan=True):
        return ""
    return f"differs by {numpy.nanmax(numpy.abs(found - expected)):.3g} of {scale:.3g}"


def run_case(tools, folder, function, arguments):
    """Returns "equal", "refused" or "wrong", and why."""
    jitted = jax.jit(function)
    exported = export.export(jitted)(*arguments)
    (folder / "program.mlirbc").write_bytes(exported.mlir_module_serialized)
    compiled = subprocess.run(
        [tools[0], "compile", folder / "program.mlirbc", "-o", folder / "program.partita"], capture_output=True, text=True)
    if compiled.returncode == 1:
        return "refused", compiled.stderr.strip().splitlines()[-1][:160]
    if compiled.returncode:
        return "wrong", f"exit code {compiled.returncode}: {compiled.stderr[-300:]}"
    kept = [list(arguments)[i] for i in exported.module_kept_var_idx]
    listed = subprocess.run([tools[0], "inspect", folder / "program.partita", "--json"], capture_output=True, text=True)
    names = [row["name"] for row in json.loads(listed.stdout)["inputs"]]
    command = [tools[1], folder / "program.partita", "--output-dir", folder / "out", "--json"]
    if kept:
        tensors = {name: numpy.require(numpy.asarray(value), requirements="C") for name, value in zip(names, kept)}
        safetensors.numpy.save_file(tensors, folder / "in.safetensors")
        command += ["--inputs", folder / "in.safetensors"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return "wrong", ran.stderr[-300:]
    outputs = json.loads(ran.stdout)["outputs"]
    expected = jax.tree.leaves(jitted(*arguments))
    for output, value in zip(outputs, expected, strict=True):
        problem = difference(numpy.load(folder / "out" / f"{output['name']}.npy"), value)
        if problem:
            return "wrong", f"{output['name']}: {problem}"
    return "equal", ""


def main():
    tools, wanted = sys.argv[1:3], set(sys.argv[3:])
    for add in (add_elementwise, add_conversions, add_movement, add_scatters, add_reductions, add_contractions, add_control):
        add()
    counts = collections.defaultdict(collections.Counter)
    reasons = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, function, arguments in CASES:
            if wanted and name not in wanted:
                continue
            result, why = run_case(tools, pathlib.Path(folder), function, arguments)
            counts[name][result] += 1
            if result == "wrong":
                types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arguments)
                print(f"{name}({types}): {why}", flush=True)
            elif why:
                reasons.setdefault(name, why)
    total = collections.Counter()
    for name, count in counts.items():
        total += count
        print(f"{name:24} run {count.total():4} equal {count['equal']:4} refused {count['refused']:4}  {reasons.get(name, '')}")
    print(f"{'all':24} run {total.total():4} equal {total['equal']:4} refused {total['refused']:4} wrong {total['wrong']}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
