"""Makes programs of what JAX's own tests of operations leave out, with results. Needs `setup.sh --jax`.

usage: make_stablehlo_edges.py FOLDER: writes FOLDER/edges.safetensors, in the form of make_stablehlo_suite.py.

Not among them: denormal floats, which XLA flushes to 0, and padding of windows with a value that changes results, which XLA leaves out and
StableHLO does not. Two kinds: functions of JAX at the edges of types, with XLA's results, and texts of StableHLO with operations that JAX no longer writes, with
NumPy's results. They follow the topics of StableHLO's own interpreter tests.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy
import safetensors.numpy
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from make_stablehlo_suite import VERSION, bytecode

PROGRAMS = {}


def store(name, code, inputs, outputs):
    tensors = {"program": numpy.frombuffer(code, numpy.uint8)}
    tensors.update({f"in.{i}": numpy.require(numpy.asarray(value), requirements="C") for i, value in enumerate(inputs)})
    tensors.update({f"out.{i}": numpy.require(numpy.asarray(value), requirements="C") for i, value in enumerate(outputs)})
    PROGRAMS.update({f"{name}|{key}": value for key, value in tensors.items()})


def function(name, f, *arguments):
    """A function of JAX, and what XLA makes of it."""
    jitted = jax.jit(f)
    store(name, bytecode(export.export(jitted)(*arguments)), arguments, jax.tree.leaves(jitted(*arguments)))


def text(name, body, inputs, outputs):
    """`body` computes %r0, %r1 ... from the arguments %a, %b ..., whose types stand for {a}, {b} ... in it."""
    types = {letter: type_of(value) for letter, value in zip("abcdef", inputs)}
    results = {f"r{i}": type_of(value) for i, value in enumerate(outputs)}
    arguments = ", ".join(f"%{letter}: {kind}" for letter, kind in types.items())
    for key, kind in {**types, **results}.items():
        body = body.replace("{%s}" % key, kind)
    code = f"func.func public @main({arguments}) -> ({', '.join(results.values())}) {{\n{body}\n"
    code += f"return {', '.join('%' + r for r in results)} : {', '.join(results.values())}\n}}"
    with mlir.make_ir_context():
        store(name, stablehlo.serialize_portable_artifact(ir.Module.parse(code), VERSION, True), inputs, outputs)


def type_of(value):
    value = numpy.asarray(value)
    kind = value.dtype
    name = {"b": "i1", "i": f"i{8 * kind.itemsize}", "u": f"ui{8 * kind.itemsize}", "f": f"f{8 * kind.itemsize}"}[kind.kind]
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{name}>"


def noise(*shape, seed=0):
    return numpy.random.default_rng(seed + sum(shape)).normal(size=shape).astype(numpy.float32)


def add_integers():
    for dtype in (numpy.int8, numpy.int16, numpy.int32, numpy.uint8, numpy.uint16, numpy.uint32):
        info = numpy.iinfo(dtype)
        a = numpy.asarray([info.min, info.min, info.max, 7, 0, info.max, 5], dtype)
        b = numpy.asarray([info.max if info.min == 0 else -1, 0, 0, 0, 0, 2, 3], dtype)
        kind = numpy.dtype(dtype).name
        function(f"divide_{kind}", lambda a, b: (lax.div(a, b), lax.rem(a, b)), a, b)
        powers = numpy.asarray([0, 1, 2, 3, 0, 4, 13], dtype)
        text(f"power_{kind}", "%r0 = stablehlo.power %a, %b : {a}", (a, powers), (a**powers,))
        width = 8 * numpy.dtype(dtype).itemsize
        shifts = numpy.asarray([0, 1, width - 1, width, width + 1, 100, 3], dtype)
        function(f"shift_{kind}", lambda a, b: (lax.shift_left(a, b), lax.shift_right_logical(a, b), lax.shift_right_arithmetic(a, b)), a, shifts)
        function(f"wrap_{kind}", lambda a, b: (a + b, a - b, a * b, -a, abs(a) if info.min else a, jnp.sign(a)), a, b)
    numbers = numpy.asarray([numpy.nan, numpy.inf, -numpy.inf, 1e20, -1e20, 300, -300, 2.5, -2.5, -0.5], numpy.float32)
    for dtype in (numpy.int8, numpy.int32, numpy.uint8, numpy.uint32, numpy.bool_):
        function(f"convert_to_{numpy.dtype(dtype).name}", lambda x, dtype=dtype: x.astype(dtype), numbers)


def add_floats():
    x = numpy.asarray([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.5, -1.5, 2.5], numpy.float32)
    y = x[::-1].copy()
    function("special_extremes", lambda x, y: (lax.max(x, y), lax.min(x, y), lax.clamp(numpy.float32(-1), x, numpy.float32(2))), x, y)
    function("special_compare", lambda x, y: (x == y, x != y, x < y, x >= y), x, y)
    function("special_rounding", lambda x: (lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(x), jnp.floor(x), jnp.ceil(x), lax.sign(x)), x)
    function("special_functions", lambda x: (jnp.exp(x), jnp.tanh(x), lax.logistic(x), jnp.sqrt(x), jnp.log1p(x), lax.cbrt(x), lax.is_finite(x)), x)
    function("special_reductions", lambda x: (x[3:].sum(), x.max(), x[1:].min(), jnp.argmax(x), jnp.argmin(x[1:]), jnp.sort(x[1:])), x)
    bits = numpy.asarray([0, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800001, 0x3F807FFF, 0x477FE000, 0x477FF000, 0x33000001, 0x38000000, 0x387FFFFF], numpy.uint32)
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 3), (2, 23)):
        function(f"reduce_precision_{exponent}_{mantissa}", lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m), bits.view(numpy.float32))


def add_functions():
    x = noise(6, 5)
    function("reduce_xor", lambda x: lax.reduce(x, numpy.int32(0), lax.bitwise_xor, (1,)), numpy.arange(30, dtype=numpy.int32).reshape(5, 6) * 7)
    function("reduce_not_commutative", lambda x: lax.reduce(x, numpy.float32(0), lambda a, b: b * 1.0, (0,)), x)
    welford = lambda a, b: (a[0] + b[0], a[1] + b[1], lax.max(a[2], b[2]))
    function("reduce_three", lambda x: lax.reduce((x, x * x, x), (numpy.float32(0), numpy.float32(0), numpy.float32(-9)), welford, (0, 1)), x)
    function("reduce_nothing", lambda x: lax.reduce(x, numpy.float32(2), lambda a, b: a + b * a, (0,)), noise(0, 3))
    function("reduce_window_function", lambda x: lax.reduce_window(x, numpy.float32(0.5), lambda a, b: a + b + a * b, (2, 3), (2, 1), "VALID"), x / 4)
    function("reduce_window_or", lambda x: lax.reduce_window(x > 1, False, lax.bitwise_or, (2, 2), (1, 2), "SAME"), x)
    function("scatter_partial_window", lambda x, u: lax.scatter_add(x, numpy.asarray([[4], [0], [9]], numpy.int32), u, lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))), x, noise(3, 2))
    for start in (-4, 2, 4, 90):
        function(f"dynamic_slices_at_{start}", lambda x, u, i: (lax.dynamic_update_slice(x, u, (i, i)), lax.dynamic_slice(x, (i, i), (2, 3)),
                                                               lax.dynamic_update_slice(x, u[:1, :1], (i, 1))), x, noise(2, 3), numpy.int32(start))
    image = numpy.arange(2 * 5 * 5 * 4, dtype=numpy.int8).reshape(2, 5, 5, 4) % 7
    kernel = numpy.arange(3 * 2 * 2 * 6, dtype=numpy.int8).reshape(3, 2, 2, 6) % 5
    function("convolution_integers", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 2), "SAME", rhs_dilation=(1, 2), feature_group_count=2, dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=jnp.int32),
        image, kernel)
    function("top_k_unsigned", lambda x: tuple(lax.top_k(x, 3)), numpy.asarray([[3, 200, 7, 200], [255, 0, 128, 127]], numpy.uint8))


def add_texts():
    x, w = noise(3, 4), noise(4, 5)
    text("einsum", '%r0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,jk->ki"} : ({a}, {b}) -> {r0}', (x, w), ((x @ w).T,))
    text("unary_einsum", '%r0 = "stablehlo.unary_einsum"(%a) {einsum_config = "ij->j"} : ({a}) -> {r0}', (x,), (x.sum(0),))
    text("dot", "%r0 = stablehlo.dot %a, %b : ({a}, {b}) -> {r0}", (x, w), (x @ w,))
    text("broadcast", '%r0 = "stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 2>} : ({a}) -> {r0}', (x,), (numpy.broadcast_to(x, (2, 3, 4)),))
    ids = numpy.asarray([[2, 0], [1, 1]], numpy.int32)
    text("index_select", '%r0 = "stablehlo.torch_index_select"(%a, %b) {dim = 1 : i64, batch_dims = 0 : i64} : ({a}, {b}) -> {r0}', (x, ids), (x[:, ids],))
    batched = noise(2, 3, 4, 2)
    text("index_select_batch", '%r0 = "stablehlo.torch_index_select"(%a, %b) {dim = 2 : i64, batch_dims = 1 : i64} : ({a}, {b}) -> {r0}', (batched, ids),
         (numpy.stack([batched[i][:, ids[i]] for i in range(2)]),))
    text("map", """%r0 = "stablehlo.map"(%a, %b) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %p = stablehlo.multiply %x, %y : tensor<f32>
        %c = stablehlo.constant dense<2.0> : tensor<f32>
        %q = stablehlo.add %p, %c : tensor<f32>
        stablehlo.return %q : tensor<f32>
    }) {dimensions = array<i64: 0, 1>} : ({a}, {b}) -> {r0}""", (x, x + 1), (x * (x + 1) + 2,))
    text("sizes_as_operands", """%s = stablehlo.constant dense<[4, 3]> : tensor<2xi64>
    %t = stablehlo.dynamic_reshape %a, %s : ({a}, tensor<2xi64>) -> {r0}
    %n = stablehlo.get_dimension_size %t, dim = 0 : ({r0}) -> tensor<i32>
    %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %b0 = stablehlo.dynamic_broadcast_in_dim %f, %s, dims = [] : (tensor<f32>, tensor<2xi64>) -> {r0}
    %i = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi64>) -> {r0}
    %u = stablehlo.add %t, %b0 : {r0}
    %r0 = stablehlo.add %u, %i : {r0}""", (x,), (x.reshape(4, 3) + 4 + numpy.arange(3, dtype=numpy.float32),))
    text("real_dynamic_slice", """%s = stablehlo.constant dense<[1, 0]> : tensor<2xi64>
    %l = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
    %d = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
    %r0 = stablehlo.real_dynamic_slice %a, %s, %l, %d : ({a}, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {r0}""", (x,), (x[1:3, 0:4:2],))
    text("dynamic_pad", """%v = stablehlo.constant dense<9.0> : tensor<f32>
    %l = stablehlo.constant dense<[1, -1]> : tensor<2xi64>
    %h = stablehlo.constant dense<[0, 2]> : tensor<2xi64>
    %i = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
    %r0 = stablehlo.dynamic_pad %a, %v, %l, %h, %i : ({a}, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {r0}""", (x,),
         (padded(x),))
    y, g = noise(2, 3, 4), noise(2, 3, 4, seed=5)
    scale, offset, mean, variance = noise(3, seed=1), noise(3, seed=2), noise(3, seed=3), abs(noise(3, seed=4)) + 1
    wide = lambda v: v[:, None]
    normal = (y - wide(mean)) / numpy.sqrt(wide(variance) + 0.125)
    attributes = "{epsilon = 0.125 : f32, feature_index = 1 : i64}"
    text("batch_norm_inference", f'%r0 = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {attributes} : ({{a}}, {{b}}, {{c}}, {{d}}, {{e}}) -> {{r0}}',
         (y, scale, offset, mean, variance), (normal * wide(scale) + wide(offset),))
    own_mean, own_variance = y.mean((0, 2)), y.var((0, 2))
    own = (y - wide(own_mean)) / numpy.sqrt(wide(own_variance) + 0.125)
    text("batch_norm_training", f'%r0, %r1, %r2 = "stablehlo.batch_norm_training"(%a, %b, %c) {attributes} : ({{a}}, {{b}}, {{c}}) -> ({{r0}}, {{r1}}, {{r2}})',
         (y, scale, offset), (own * wide(scale) + wide(offset), own_mean, own_variance))
    loss = lambda y, s, o: (g * ((y - y.mean((0, 2), keepdims=True)) / jnp.sqrt(y.var((0, 2), keepdims=True) + 0.125) * wide(s) + wide(o))).sum()
    text("batch_norm_grad", f'%r0, %r1, %r2 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {attributes} : ({{a}}, {{b}}, {{c}}, {{d}}, {{e}}) -> ({{r0}}, {{r1}}, {{r2}})',
         (y, scale, own_mean, own_variance, g), jax.grad(loss, (0, 1, 2))(y, scale, offset))


def padded(x):
    apart = numpy.full((3, 7), 9, numpy.float32)
    apart[:, ::2] = x
    return numpy.pad(apart[:, 1:], ((1, 0), (0, 2)), constant_values=9)


def main():
    add_integers()
    add_floats()
    add_functions()
    add_texts()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(PROGRAMS, folder / "edges.safetensors")
    print(f"{sum(key.endswith('|program') for key in PROGRAMS)} programs")


if __name__ == "__main__":
    main()
