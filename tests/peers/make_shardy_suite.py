"""Makes programs of JAX that are divided over 2 x 2 devices, with the results of the undivided functions. Needs `setup.sh --jax`.

usage: make_shardy_suite.py FOLDER [NAME...]: writes FOLDER/shardy.safetensors, in the form of make_stablehlo_suite.py.

The programs cover the operations and divisions of Shardy's own executable tests: data moves between devices in pads, slices, reversals and
reshapes, sums go over divided dimensions, gathers and scatters have divided operands, and shard_map has each collective.
"""

import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy
import safetensors.numpy
from jax import export, lax
from jax.sharding import NamedSharding, PartitionSpec as P

from make_stablehlo_suite import bytecode

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
BOTH = ("x", "y")
PROGRAMS = {}


def noise(*shape, dtype=numpy.float32, seed=0):
    generator = numpy.random.default_rng(seed + sum(shape))
    if numpy.issubdtype(dtype, numpy.integer):
        return generator.integers(-50, 50, shape).astype(dtype)
    return generator.normal(size=shape).astype(dtype)


def ids(limit, *shape, seed=0):
    return numpy.random.default_rng(seed).integers(0, limit, shape).astype(numpy.int32)


def program(name, function, arguments, specs, out=P()):
    PROGRAMS[name] = (function, arguments, specs, out)


def held(x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def manual(function, in_specs, out_specs):
    return jax.shard_map(function, mesh=MESH, in_specs=in_specs, out_specs=out_specs)


def add_products():
    x, w = noise(4, 8), noise(8, 6)
    program("dot_sum_divided", lambda x, w: x @ w, (x, w), (P("x", "y"), P("y")))
    program("dot_sum_divided_scattered", lambda x, w: held(x @ w, "y"), (x, w), (P(None, BOTH), P(BOTH)), P("y"))
    program("dot_rows_and_columns", lambda x, w: x @ w, (x, w), (P("x"), P(None, "y")), P("x", "y"))
    program("dot_batch_and_sum", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (noise(4, 3, 6), noise(4, 6, 5)),
            (P("x", None, "y"), P("x", "y")), P("x"))
    program("dot_integers", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), (noise(4, 8, dtype=numpy.int8), noise(8, 4, dtype=numpy.int8)),
            (P(None, "x"), P("x", "y")), P(None, "y"))
    conv = lambda x, w, **options: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)
    image, kernel = noise(4, 6, 6, 4), noise(3, 3, 4, 8)
    program("convolution_batch", conv, (image, kernel), (P("x"), P()), P("x"))
    program("convolution_features_in", conv, (image, kernel), (P(None, None, None, "x"), P(None, None, "x")))
    program("convolution_features_out", conv, (image, kernel), (P("y"), P(None, None, None, "x")), P("y", None, None, "x"))
    program("convolution_spatial", conv, (image, kernel), (P(None, "x"), P()), P(None, "x"))
    program("convolution_feature_groups", lambda x, w: conv(x, w, feature_group_count=4), (image, noise(3, 3, 1, 8)),
            (P(None, None, None, "x"), P(None, None, None, "x")), P(None, None, None, "x"))
    program("convolution_batch_groups", lambda x, w: conv(x, w, batch_group_count=2), (image, noise(3, 3, 4, 8)), (P("x"), P()))
    program("convolution_gradient", jax.grad(lambda w, x: (conv(x, w) ** 2).sum()), (kernel, image), (P(None, None, "y", "x"), P("x")),
            P(None, None, "y", "x"))


def add_movement():
    x, long = noise(8, 4), noise(16)
    program("pad_right", lambda x: jnp.pad(x, 2)[:16], (long,), (P(BOTH),), P(BOTH))
    program("pad_left", lambda x: jnp.pad(x, (0, 3))[3:], (long,), (P(BOTH),), P(BOTH))
    program("pad_several_hops", lambda x: lax.pad(x, 0.5, ((9, -9, 0),)), (long,), (P(BOTH),), P(BOTH))
    program("pad_interior", lambda x: lax.pad(x, 0.5, ((1, 0, 1), (0, 0, 0))), (x,), (P("x", "y"),), P("x", "y"))
    program("pad_negative", lambda x: lax.pad(x, 0.5, ((-1, -3, 0), (2, 2, 0))), (x,), (P("x", "y"),), P("x", "y"))
    program("reverse_divided", lambda x: lax.rev(x, (0,)), (x,), (P("x"),), P("x"))
    program("reverse_both", lambda x: lax.rev(x, (0, 1)), (x,), (P("x", "y"),), P("x", "y"))
    program("slice_with_exchange", lambda x: x[3:11], (long,), (P(BOTH),), P(BOTH))
    program("slice_strided", lambda x: x[1::2], (long,), (P(BOTH),), P(BOTH))
    program("slice_other_dimension", lambda x: x[:, 1:3], (x,), (P("x"),), P("x"))
    program("reshape_split", lambda x: x.reshape(4, 4), (long,), (P(BOTH),), P("x", "y"))
    program("reshape_join", lambda x: x.reshape(-1), (x,), (P("x", "y"),), P(BOTH))
    program("reshape_axis_moves", lambda x: held(x.reshape(4, 8), None, "x"), (x,), (P("x"),), P(None, "x"))
    program("reshape_transpose", lambda x: x.reshape(2, 4, 4).transpose(2, 0, 1), (x,), (P("x", "y"),), P("y", "x"))
    program("concatenate_divided", lambda a, b: jnp.concatenate([a, b, a]), (noise(4, 4), noise(8, 4)), (P("x"), P("x")), P("x"))
    program("reshard_swap", lambda x: held(held(x, "x", "y") * 2, "y", "x"), (x,), (P("x", "y"),), P("y", "x"))
    program("reshard_join_axes", lambda x: held(x + 1, BOTH), (x,), (P("x", "y"),), P(BOTH))
    program("reshard_order_of_axes", lambda x: held(x + 1, ("y", "x")), (x,), (P(BOTH),), P(("y", "x")))
    program("iota_divided", lambda x: x + held(lax.broadcasted_iota(jnp.float32, (8, 4), 0), "y", "x"), (x,), (P("y", "x"),), P("y", "x"))
    program("constant_divided", lambda x: x * held(jnp.asarray(noise(8, 4, seed=3)), "x"), (x,), (P("x"),), P("x"))
    program("broadcast_divided", lambda x: held(jnp.broadcast_to(x[:, None], (4, 6, 3)), "x", "y"), (noise(4, 3),), (P(),), P("x", "y"))


def add_indexing():
    table, places = noise(8, 6), ids(8, 5)
    program("gather_rows_divided", lambda t, i: t[i], (table, places), (P("x"), P()))
    program("gather_rows_integers", lambda t, i: t[i], (noise(8, 6, dtype=numpy.int32), places), (P(BOTH), P()))
    program("gather_two_dimensions", lambda t, i, j: t[i, j], (noise(8, 6, 4), places, ids(6, 5, seed=1)), (P("x", "y"), P(), P()))
    program("gather_ids_divided", lambda t, i: t[i], (table, ids(8, 4)), (P(None, "y"), P("x")), P("x", "y"))
    program("scatter_add_rows", lambda t, i, u: t.at[i].add(u), (table, places, noise(5, 6)), (P("x"), P(), P()), P("x"))
    program("scatter_set_columns", lambda t, i, u: t.at[i].set(u), (table, numpy.asarray([6, 1, 3], numpy.int32), noise(3, 6)),
            (P(None, "y"), P(), P(None, "y")), P(None, "y"))
    program("scatter_max_rows", lambda t, i, u: t.at[i].max(u), (table, places, noise(5, 6)), (P(BOTH), P(), P()), P(BOTH))
    program("scatter_unsigned_min", lambda t, i, u: t.at[i].min(u), (ids(200, 8, 6).astype(numpy.uint8) + 50, places, ids(250, 5, 6, seed=2).astype(numpy.uint8)),
            (P("x"), P(), P()), P("x"))
    program("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)), (table, noise(3, 2), numpy.int32(4)), (P("x"), P(), P()), P("x"))
    program("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (3, 4)), (table, numpy.int32(7)), (P("x", "y"), P()))
    program("sort_rows", lambda x: jnp.sort(x, 1), (noise(4, 6, dtype=numpy.int32),), (P("x"),), P("x"))
    program("sort_divided", lambda x: jnp.sort(x, 0), (noise(8, 3),), (P("x", None),), P("x"))
    program("top_k_rows", lambda x: tuple(lax.top_k(x, 3)), (noise(4, 6),), (P("x"),), (P("x"), P("x")))


def add_reductions():
    x = noise(8, 6)
    program("reduce_all", lambda x: (x.sum(), x.max(), x.min(), jnp.prod(x)), (x,), (P("x", "y"),), (P(),) * 4)
    program("reduce_rows", lambda x: x.sum(0), (x,), (P("x", "y"),), P("y"))
    program("reduce_by_function", lambda x: lax.reduce(x, numpy.float32(0), lambda a, b: a + b + a * b, (1,)), (x / 4,), (P("x"),), P("x"))
    program("argmax_divided", lambda x: jnp.argmax(x, 0), (x,), (P("x"),))
    program("cumsum_divided", lambda x: jnp.cumsum(x, 0), (x,), (P("x"),), P("x"))
    program("softmax_divided", lambda x: jax.nn.softmax(x, 1), (x,), (P("x", "y"),), P("x", "y"))
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    image = noise(2, 8, 8, 4)
    program("reduce_window_batch", pool, (image,), (P("x", None, None, "y"),), P("x", None, None, "y"))
    program("reduce_window_spatial", pool, (image,), (P(None, "x", "y"),), P(None, "x", "y"))
    program("select_and_scatter", jax.grad(lambda x: (pool(x) ** 2).sum()), (image,), (P("x", None, None, "y"),), P("x", None, None, "y"))


def add_control():
    x, w = noise(4, 8), noise(3, 8, 8) / 3
    step = lambda h, w: (held(jnp.tanh(h @ w), "x"), h.sum())
    program("scan_of_layers", lambda x, w: lax.scan(step, x, w), (x, w), (P("x"), P(None, None, "y")), (P("x"), P()))
    program("cond", lambda x, i: lax.cond(i > 0, lambda x: x @ x.T, lambda x: x[:, :4] * 2, x), (x, numpy.int32(1)), (P("x", "y"), P()))
    program("switch", lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 3], x), (x, numpy.int32(2)), (P("x", "y"), P()), P("x", "y"))
    key = numpy.asarray([1, 2], numpy.uint32)
    program("dropout", lambda x, k: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0), (x, key), (P("x", "y"), P()), P("x", "y"))


def add_manual():
    x = noise(8, 4)
    program("manual_psum", manual(lambda x: lax.psum(x, BOTH), P("x", "y"), P()), (x,), (P("x", "y"),))
    program("manual_pmax_pmin", manual(lambda x: (lax.pmax(x, "x"), lax.pmin(x, "y")), P("x", "y"), (P(None, "y"), P("x"))), (x,), (P("x", "y"),),
            (P(None, "y"), P("x")))
    program("manual_psum_scatter", manual(lambda x: lax.psum_scatter(x, "x", tiled=True), P(None, "y"), P("x", "y")), (x,), (P(None, "y"),), P("x", "y"))
    program("manual_all_gather", manual(lambda x: lax.all_gather(x, "x", tiled=True) * x.sum(), P("x", "y"), P("x", "y")), (x,), (P("x", "y"),), P("x", "y"))
    program("manual_all_to_all", manual(lambda x: lax.all_to_all(x, "y", 1, 0, tiled=True), P(BOTH), P(BOTH)), (x,), (P(BOTH),), P(BOTH))
    program("manual_permute", manual(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)]), P("x", "y"), P("x", "y")), (x,), (P("x", "y"),), P("x", "y"))
    program("manual_permute_to_itself", manual(lambda x: lax.ppermute(x, "x", [(0, 0), (1, 1)]), P("x", "y"), P("x", "y")), (x,), (P("x", "y"),), P("x", "y"))
    program("manual_permute_one_way", manual(lambda x: lax.ppermute(x, "x", [(0, 1)]), P("x", "y"), P("x", "y")), (x,), (P("x", "y"),), P("x", "y"))
    program("manual_axis_index", manual(lambda x: x + 10 * lax.axis_index("x") + lax.axis_index("y"), P("x", "y"), P("x", "y")), (x,), (P("x", "y"),),
            P("x", "y"))
    program("manual_products", manual(lambda x, w: lax.psum(x @ w, "y"), (P("x", "y"), P("y")), P("x")), (x, noise(4, 6)), (P("x", "y"), P("y")), P("x"))
    program("manual_sort", manual(lambda x: jnp.sort(x, 1), P(BOTH), P(BOTH)), (x,), (P(BOTH),), P(BOTH))


def tensors_of(name, function, arguments, specs, out):
    place = lambda spec: NamedSharding(MESH, spec)
    jitted = jax.jit(function, in_shardings=tuple(map(place, specs)), out_shardings=jax.tree.map(place, out, is_leaf=lambda x: isinstance(x, P)))
    exported = export.export(jitted)(*arguments)
    # Only shard_map needs its devices; any other function runs whole, operation by operation.
    expected = jitted(*arguments) if name.startswith("manual_") else function(*map(jnp.asarray, arguments))
    tensors = {"program": numpy.frombuffer(bytecode(exported), numpy.uint8)}
    for i, kept in enumerate(exported.module_kept_var_idx):
        tensors[f"in.{i}"] = numpy.asarray(arguments[kept])
    for i, value in enumerate(jax.tree.leaves(expected)):
        tensors[f"out.{i}"] = numpy.require(numpy.asarray(value), requirements="C")
    return tensors


def main():
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for add in (add_products, add_movement, add_indexing, add_reductions, add_control, add_manual):
        add()
    flat = {}
    for name, given in PROGRAMS.items():
        if not wanted or name in wanted:
            flat.update({f"{name}|{key}": value for key, value in tensors_of(name, *given).items()})
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(flat, folder / "shardy.safetensors")
    print(f"{sum(key.endswith('|program') for key in flat)} programs")


if __name__ == "__main__":
    main()
