"""Writes tests/data/jax-tiny: small programs of JAX as jax.export writes them, with JAX's outputs, and in refused/ programs that Partita
refuses.

Usage: make_jax.py [NAME...]. Needs `setup.sh --jax`, and `--flax` for flax_programs.py. Its output is committed, so tests need no JAX.
Run it when a program or JAX's version changes.

<name>.mlirbc is the portable artifact. <name>.safetensors has in.*, out.*, and for training steps state.* (the donated arguments before
the first step), out<k>.* (outputs of step k) and after.* (the donated arguments after the last step). Programs in bf16 have exact.*, the
outputs in f32.
"""

import functools
import inspect
import os
import pathlib
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy
import safetensors.numpy
from jax import export, lax
from jax.sharding import NamedSharding, PartitionSpec as P
from jaxlib.mlir.dialects import stablehlo

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "jax-tiny"
# Locations in the files are relative to the repository, wherever it lies.
jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(str(ROOT)) + "/")
STEPS = 5


def noise(seed, *shape, scale=1.0):
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape) * scale, jnp.float32)


def integers(seed, limit, *shape):
    return jnp.asarray(numpy.random.default_rng(seed).integers(0, limit, shape), jnp.int32)


def linear(seed, inputs, outputs):
    return {"w": noise(seed, inputs, outputs, scale=inputs**-0.5), "b": noise(seed + 1, outputs, scale=0.1)}


def norm(seed, width):
    return {"scale": 1 + noise(seed, width, scale=0.1), "bias": noise(seed + 1, width, scale=0.1)}


def auto_mesh(**axes):
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(jax.sharding.AxisType.Auto,) * len(axes))


# Models.


def apply_linear(p, x):
    return x @ p["w"] + p["b"]


def apply_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]


def attention(p, x, heads, causal):
    batch, length, width = x.shape
    q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, 3 * heads, width // heads), 3, axis=2)
    scores = jnp.einsum("blnh,bsnh->bnls", q, k) / (width // heads) ** 0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    y = jnp.einsum("bnls,bsnh->blnh", jax.nn.softmax(scores), v)
    return apply_linear(p["out"], y.reshape(batch, length, width))


def block(p, x, heads, causal):
    x = x + attention(p["attention"], apply_norm(p["norm1"], x), heads, causal)
    return x + apply_linear(p["down"], jax.nn.gelu(apply_linear(p["up"], apply_norm(p["norm2"], x))))


def block_weights(seed, width):
    return {
        "norm1": norm(seed, width),
        # Without a bias: the gradient of the keys' is 0, and Adam would divide its rounding errors by their size.
        "attention": {"qkv": noise(seed + 2, width, 3 * width, scale=width**-0.5), "out": linear(seed + 4, width, width)},
        "norm2": norm(seed + 6, width),
        "up": linear(seed + 8, width, 4 * width),
        "down": linear(seed + 10, 4 * width, width),
    }


def gpt_weights(layers=2, width=16, vocabulary=40, length=12):
    return {
        "wte": noise(1, vocabulary, width, scale=0.5),
        "wpe": noise(2, length, width, scale=0.1),
        "blocks": [block_weights(20 * (i + 1), width) for i in range(layers)],
        "norm": norm(3, width),
    }


def gpt_logits(p, ids, dropout=None):
    x = p["wte"][ids] + p["wpe"][: ids.shape[1]]
    for i, weights in enumerate(p["blocks"]):
        x = block(weights, x, 2, True)
        if dropout is not None:
            x = jnp.where(jax.random.bernoulli(jax.random.fold_in(dropout, i), 0.9, x.shape), x / 0.9, 0)
    return apply_norm(p["norm"], x) @ p["wte"].T


def cross_entropy(logits, targets):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))


def mlp():
    weights = {"layers": [linear(1, 8, 32), linear(3, 32, 32), linear(5, 32, 4)]}

    def mlp(p, x):
        for layer in p["layers"][:-1]:
            x = jax.nn.relu(apply_linear(layer, x))
        return {"logits": apply_linear(p["layers"][-1], x)}

    return mlp, (weights, noise(9, 6, 8))


def gpt():
    def gpt(p, ids):
        return gpt_logits(p, ids)

    return gpt, (gpt_weights(), integers(9, 40, 3, 12))


def gpt_scan():
    weights = gpt_weights(layers=3)
    weights["blocks"] = jax.tree.map(lambda *xs: jnp.stack(xs), *weights["blocks"])

    def gpt_scan(p, ids):
        x = p["wte"][ids] + p["wpe"][: ids.shape[1]]
        x, means = lax.scan(lambda x, w: (block(w, x, 2, True), x.mean()), x, p["blocks"])
        return {"logits": apply_norm(p["norm"], x) @ p["wte"].T, "means": means}

    return gpt_scan, (weights, integers(9, 40, 3, 12))


def vit():
    width, patch = 16, 4
    weights = {
        "patch": {"w": noise(1, patch, patch, 3, width, scale=0.15), "b": noise(2, width, scale=0.1)},
        "cls": noise(3, 1, 1, width, scale=0.1),
        "positions": noise(4, 1, 17, width, scale=0.1),
        "blocks": [block_weights(20 * (i + 1), width) for i in range(2)],
        "norm": norm(5, width),
        "head": linear(7, width, 10),
    }

    def vit(p, images):
        x = lax.conv_general_dilated(images, p["patch"]["w"], (patch, patch), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = (x + p["patch"]["b"]).reshape(images.shape[0], -1, width)
        x = jnp.concatenate([jnp.broadcast_to(p["cls"], (x.shape[0], 1, width)), x], 1) + p["positions"]
        for weights in p["blocks"]:
            x = block(weights, x, 2, False)
        return apply_linear(p["head"], apply_norm(p["norm"], x)[:, 0])

    return vit, (weights, noise(8, 2, 16, 16, 3))


def conv(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)


def coatnet_weights():
    width, hidden = 8, 16
    return {
        "stem": {"w": noise(1, 3, 3, 3, width, scale=0.2), "scale": 1 + noise(2, width, scale=0.1), "bias": noise(3, width, scale=0.1)},
        "mbconv": {
            "expand": noise(4, 1, 1, width, hidden, scale=0.3),
            "depthwise": noise(5, 3, 3, 1, hidden, scale=0.3),
            "squeeze": linear(6, hidden, 4),
            "excite": linear(8, 4, hidden),
            "project": noise(10, 1, 1, hidden, width, scale=0.3),
            "scale": 1 + noise(11, hidden, scale=0.1),
            "bias": noise(12, hidden, scale=0.1),
        },
        "block": block_weights(20, width),
        "head": linear(14, width, 10),
    }


def coatnet_logits(p, images):
    x = conv(images, p["stem"]["w"], 2) * p["stem"]["scale"] + p["stem"]["bias"]
    x = jax.nn.silu(x)
    m = p["mbconv"]
    y = jax.nn.silu(conv(x, m["expand"]) * m["scale"] + m["bias"])
    y = jax.nn.silu(conv(y, m["depthwise"], groups=y.shape[-1]))
    gate = apply_linear(m["excite"], jax.nn.relu(apply_linear(m["squeeze"], y.mean((1, 2)))))
    x = x + conv(y * jax.nn.sigmoid(gate)[:, None, None], m["project"])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = block(p["block"], x.reshape(x.shape[0], -1, x.shape[-1]), 2, False)
    return apply_linear(p["head"], x.mean(1))


def coatnet():
    def coatnet(p, images):
        return coatnet_logits(p, images)

    return coatnet, (coatnet_weights(), noise(9, 2, 16, 16, 3))


def moe():
    weights = {"router": noise(1, 8, 4), "up": noise(2, 4, 8, 16, scale=0.35), "down": noise(3, 4, 16, 8, scale=0.25)}

    def moe(p, x):
        scores, chosen = lax.top_k(jax.nn.softmax(x @ p["router"]), 2)
        gates = (jax.nn.one_hot(chosen, 4) * (scores / scores.sum(-1, keepdims=True))[..., None]).sum(1)
        hidden = jax.nn.gelu(jnp.einsum("te,xem->xtm", x, p["up"]), approximate=False)
        return jnp.einsum("xtm,xme,tx->te", hidden, p["down"], gates)

    return moe, (weights, noise(9, 6, 8))


def indexing():
    def indexing(x, ids, i):
        rows = x[ids]
        return {
            "argmax": jnp.argmax(x, -1),
            "argmin": jnp.argmin(x, 0),
            "sorted": jnp.sort(x, axis=0),
            "order": jnp.argsort(x, axis=-1),
            "sums": jnp.cumsum(x, 1),
            "largest": lax.cummax(x, 0),
            "slice": lax.dynamic_slice(x, (i, 1), (2, 3)),
            "updated": lax.dynamic_update_slice(x, rows[:2, :3], (i, i)),
            "branch": lax.cond(i > 2, lambda y: y * 2, lambda y: y - 1, x),
            "window": jax.vmap(lambda j: lax.dynamic_slice(x, (j, 0), (2, 8)))(ids),
            "added": x.at[ids].add(rows),
            "set": x.at[ids, 2].set(0.5),
            "flipped": x[::-1, ::2],
            "powers": jnp.sign(x) * jnp.abs(x) ** 1.5,
            "bits": jnp.bitwise_xor(ids.astype(jnp.uint32) << 3, jnp.uint32(5)) >> jnp.uint32(1),
            "any": jnp.any(x > 1, 0),
            "finite": jnp.isfinite(x / (ids[:, None] - 1)[:6]),
        }

    return indexing, (noise(1, 6, 8), jnp.asarray([0, 5, 2, 1, 4, 3], jnp.int32), jnp.asarray(3, jnp.int32))


def operations():
    """Operations that the models lack, and gradients of windows and convolutions."""

    def operations(x, image, kernel, ids, key):
        pooled = lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        depthwise = lambda w: conv(image, w, 2, image.shape[-1])
        return {
            "normal": jax.random.normal(key, (5, 3)),
            "categorical": jax.random.categorical(key, x),
            "permutation": jax.random.permutation(key, 10),
            "bits": jax.random.bits(key, (7,)),
            "padded": jnp.pad(jnp.roll(x, 2, 1), ((1, 0), (0, 2)), mode="reflect"),
            "transposed": lax.conv_transpose(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            "groups": lax.conv_general_dilated(
                jnp.concatenate([image, image]), kernel, (1, 1), [(1, 1), (0, 2)], rhs_dilation=(2, 1),
                dimension_numbers=("NHWC", "HWIO", "NHWC"), batch_group_count=2),
            "pool_gradient": jax.grad(lambda y: (pooled(y) ** 2).sum())(image),
            "depthwise_gradient": jax.grad(lambda w: (depthwise(w) ** 2).sum())(kernel[:, :, :1, :4]),
            "checkpoint": jax.grad(jax.checkpoint(lambda y: jnp.tanh(y @ y.T).sum()))(x),
            "scan_gradient": jax.grad(lambda w: lax.scan(lambda h, v: (jnp.tanh(h * v), h.sum()), w[0], w)[0].sum())(x),
            "loop": lax.fori_loop(0, 5, lambda i, y: y * 1.1 + i, x),
            "products": lax.associative_scan(jnp.multiply, x, axis=1),
            "keys": lax.sort((ids % 3, x[:, 0], ids), num_keys=2)[2],
            "unsigned": jnp.sort(ids.astype(jnp.uint32) * jnp.uint32(2654435761)),
            "unique": jnp.unique(ids % 3, size=4),
            "median": jnp.median(x, 0),
            "counts": jnp.bincount(ids, length=9),
            "place": jnp.argmax(x > 0, 1),
            "quotients": (ids - 3) // 2 + (ids - 3) % 2 + lax.population_count(ids) + lax.clz(ids),
            "erf_inv": jax.scipy.special.erfinv(jnp.tanh(x)),
            "attention": jax.nn.dot_product_attention(
                x.reshape(1, 6, 4, 2), x[:, :4].reshape(1, 6, 2, 2), x[:, 4:].reshape(1, 6, 2, 2), is_causal=True),
            "half": jnp.sin(x.astype(jnp.float16)).astype(jnp.float32) * 0 + (x.astype(jnp.bfloat16) > 0),
        }

    ids = jnp.asarray([7, 5, 2, 1, 4, 8], jnp.int32)
    return operations, (noise(1, 6, 8), noise(2, 2, 5, 5, 4), noise(3, 3, 3, 4, 6), ids, jax.random.PRNGKey(3))


def random_bits():
    """Keys of XLA's generators."""

    def random_bits(key, word):
        keys = jax.random.wrap_key_data(key, impl="rbg")
        results = {
            "uniform": jax.random.uniform(keys, (3, 5)),
            "normal": jax.random.normal(keys, (7,)),
            "split": jax.random.key_data(jax.random.split(keys, 3)),
            "integers": jax.random.randint(keys, (2, 3), -5, 9),
            "bernoulli": jax.random.bernoulli(keys, 0.3, (17,)),
            "parts": lax.bitcast_convert_type(lax.bitcast_convert_type(word, jnp.uint8), jnp.float32),
        }
        algorithms = lax.RandomAlgorithm
        for name, algorithm in {"default": algorithms.RNG_DEFAULT, "philox": algorithms.RNG_PHILOX, "threefry": algorithms.RNG_THREE_FRY}.items():
            for shape in ((), (1,), (4, 6), (3, 5), (5, 1, 7), (7, 2, 9)):
                for dtype in (jnp.uint8, jnp.uint16, jnp.uint32):
                    state, bits = lax.rng_bit_generator(key, shape, dtype, algorithm)
                    label = f"{name}_{dtype.__name__}_{'x'.join(map(str, shape))}"
                    results |= {label: bits.astype(jnp.uint32), label + "_state": state}
        return results

    # The counter's lower half overflows.
    return random_bits, (jnp.asarray([3, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF], jnp.uint32), noise(4, 3, 2))


# Training steps. The first `donated` arguments are replaced by the first results.


def adamw(p, m, v, count, g, rate=1e-2, decay=0.01, clip=1.0):
    total = jnp.sqrt(sum(jnp.sum(x * x) for x in jax.tree.leaves(g)))
    g = jax.tree.map(lambda x: x * jnp.minimum(1, clip / (total + 1e-6)), g)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    scale1, scale2 = 1 - 0.9**count, 1 - 0.999**count

    def update(p, m, v):
        return p - rate * ((m / scale1) / (jnp.sqrt(v / scale2) + 1e-8) + decay * p)

    return jax.tree.map(update, p, m, v), m, v, count


def zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def gpt_step():
    weights = gpt_weights()

    def gpt_step(p, m, v, count, ids, targets):
        loss, g = jax.value_and_grad(lambda p: cross_entropy(gpt_logits(p, ids), targets))(p)
        return (*adamw(p, m, v, count, g), loss)

    return gpt_step, (weights, zeros(weights), zeros(weights), jnp.float32(0), integers(8, 40, 3, 12), integers(9, 40, 3, 12)), 4


def dropout_step():
    weights = gpt_weights(layers=1)

    def dropout_step(p, key, ids, targets):
        key, now = jax.random.split(key)
        loss, g = jax.value_and_grad(lambda p: cross_entropy(gpt_logits(p, ids, now), targets))(p)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, g), key, loss

    return dropout_step, (weights, jax.random.PRNGKey(7), integers(8, 40, 3, 12), integers(9, 40, 3, 12)), 2


def coatnet_step():
    weights = coatnet_weights()

    def coatnet_step(p, m, images, targets):
        loss, g = jax.value_and_grad(lambda p: cross_entropy(coatnet_logits(p, images), targets))(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + g, m, g)
        return jax.tree.map(lambda p, m: p - 0.05 * m, p, m), m, loss

    return coatnet_step, (weights, zeros(weights), noise(8, 4, 16, 16, 3), integers(9, 10, 4)), 2


# Divided programs: the function, its arguments, the number of donated ones, and a sharding per argument. Weights are divided as
# Megatron does, batches over `data`.


def divided_block(mesh):
    column, row, whole = (NamedSharding(mesh, spec) for spec in (P(None, "tensor"), P("tensor"), P()))
    return {
        "norm1": {"scale": whole, "bias": whole},
        "attention": {"qkv": column, "out": {"w": row, "b": whole}},
        "norm2": {"scale": whole, "bias": whole},
        "up": {"w": column, "b": row},
        "down": {"w": row, "b": whole},
    }


def divided_gpt(mesh, layers):
    whole = NamedSharding(mesh, P())
    return {
        "wte": NamedSharding(mesh, P("tensor")),
        "wpe": whole,
        "blocks": [divided_block(mesh) for _ in range(layers)],
        "norm": {"scale": whole, "bias": whole},
    }


def gpt_2x2():
    mesh = auto_mesh(data=2, tensor=2)
    rows = NamedSharding(mesh, P("data"))

    def gpt_2x2(p, ids):
        x = lax.with_sharding_constraint(p["wte"][ids] + p["wpe"][: ids.shape[1]], NamedSharding(mesh, P("data", "tensor")))
        for weights in p["blocks"]:
            x = block(weights, x, 2, True)
        return apply_norm(p["norm"], x) @ p["wte"].T

    return gpt_2x2, (gpt_weights(), integers(9, 40, 4, 12)), 0, (divided_gpt(mesh, 2), rows)


def gpt_step_2x2():
    function, arguments, donated = gpt_step()
    mesh = auto_mesh(data=2, tensor=2)
    weights, rows, whole = divided_gpt(mesh, 2), NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    arguments = (*arguments[:4], integers(8, 40, 4, 12), integers(9, 40, 4, 12))

    def gpt_step_2x2(p, m, v, count, ids, targets):
        return function(p, m, v, count, ids, targets)

    return gpt_step_2x2, arguments, donated, (weights, weights, weights, whole, rows, rows)


# Programs divided by hand (shard_map): collectives are the program's own.


def manual(mesh, body, in_specs, out_specs, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def manual_mlp_2x2():
    """An MLP as Megatron divides it: one sum per layer. The batch's gradients are added up by shard_map's transpose."""
    mesh = auto_mesh(data=2, tensor=2)
    weights = {"up": linear(1, 8, 16), "down": linear(3, 16, 8)}
    specs = {"up": {"w": P(None, "tensor"), "b": P("tensor")}, "down": {"w": P("tensor"), "b": P()}}

    def layer(p, x):
        y = jax.nn.gelu(apply_linear(p["up"], x))
        return x + lax.psum(y @ p["down"]["w"], "tensor") + p["down"]["b"]

    def manual_mlp_2x2(p, x):
        apply = manual(mesh, layer, (specs, P("data")), P("data"))
        loss, gradients = jax.value_and_grad(lambda p: (apply(p, x) ** 2).mean())(p)
        return {"y": apply(p, x), "loss": loss, "gradients": gradients}

    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    return manual_mlp_2x2, (weights, noise(5, 4, 8)), 0, (shardings, NamedSharding(mesh, P("data")))


def manual_ring():
    """Products of all pairs of rows, while the other factor travels around a ring; and shifts that end, and cross."""
    mesh = auto_mesh(x=4)

    def body(a, b):
        me = lax.axis_index("x")
        out = jnp.zeros((4, a.shape[0], b.shape[0]))
        for step in range(4):
            out = lax.dynamic_update_slice(out, (a @ b.T)[None], ((me - step) % 4, 0, 0))
            if step < 3:
                b = lax.ppermute(b, "x", [(i, (i + 1) % 4) for i in range(4)])
        shifted = lax.ppermute(a, "x", [(i, i + 1) for i in range(3)])
        crossed = lax.ppermute(a, "x", [(0, 1), (1, 0), (2, 3), (3, 2)])
        return out.transpose(1, 0, 2).reshape(a.shape[0], -1), shifted, crossed

    def manual_ring(a, b):
        return manual(mesh, body, (P("x"), P("x")), (P("x"), P("x"), P("x")))(a, b)

    rows = NamedSharding(mesh, P("x"))
    return manual_ring, (noise(1, 8, 6), noise(2, 8, 6)), 0, (rows, rows)


def manual_gather_scatter_2x2():
    """Sequence parallelism: rows are gathered before the MLP and scattered after it."""
    mesh = auto_mesh(data=2, tensor=2)
    weights = {"up": noise(1, 8, 16, scale=0.35), "down": noise(2, 16, 8, scale=0.25)}
    specs = {"up": P(None, "tensor"), "down": P("tensor")}

    def body(p, x):
        whole = lax.all_gather(x, "tensor", axis=1, tiled=True)
        y = jax.nn.relu(whole @ p["up"]) @ p["down"]
        y = lax.psum_scatter(y, "tensor", scatter_dimension=1, tiled=True)
        mean = lax.pmean(y, ("data", "tensor"))
        most = lax.pmax(x, "tensor")
        return x + y, mean, most, lax.all_gather(x[0, 0], ("tensor", "data"))

    def manual_gather_scatter_2x2(p, x):
        results = (P("data", "tensor"), P(), P("data"), P())
        return manual(mesh, body, (specs, P("data", "tensor")), results, check_vma=False)(p, x)

    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    return manual_gather_scatter_2x2, (weights, noise(5, 2, 6, 8)), 0, (shardings, NamedSharding(mesh, P("data", "tensor")))


def manual_experts():
    """One expert per device: rows go to their experts' devices and back (all-to-all), in equal shares."""
    mesh = auto_mesh(x=4)
    weights = {"router": noise(1, 8, 4), "up": noise(2, 4, 8, 16, scale=0.35), "down": noise(3, 4, 16, 8, scale=0.25)}
    specs = {"router": P(), "up": P("x"), "down": P("x")}
    capacity = 3

    def body(p, x):
        chosen = jnp.argmax(x @ p["router"], -1)
        taken = jax.nn.one_hot(chosen, 4)
        place = (jnp.cumsum(taken, 0) * taken).sum(-1) - 1
        sent = taken[:, :, None] * jax.nn.one_hot(place, capacity)[:, None]
        buffers = jnp.einsum("txc,te->xce", sent, x)
        here = lax.all_to_all(buffers, "x", 0, 1, tiled=True)
        made = jax.nn.relu(here[0] @ p["up"][0]) @ p["down"][0]
        back = lax.all_to_all(made[None], "x", 1, 0, tiled=True)
        return jnp.einsum("txc,xce->te", sent, back), lax.psum(taken.sum(0), "x")

    def manual_experts(p, x):
        return manual(mesh, body, (specs, P("x")), (P("x"), P()))(p, x)

    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    return manual_experts, (weights, noise(5, 24, 8)), 0, (shardings, NamedSharding(mesh, P("x")))


def manual_families():
    """Operations of each family on values that differ between devices, and values that are equal on all."""
    mesh = auto_mesh(x=2, y=2)

    def body(x, image, kernel, table, ids):
        i, j = lax.axis_index("x"), lax.axis_index("y")
        rows = table[(ids + i) % 5]
        mixed = x @ table.T + j
        return {
            "rows": rows,
            "mixed": mixed,
            "sliced": lax.dynamic_slice(table, (i + j, 0), (2, 4)),
            "updated": lax.dynamic_update_slice(x, rows[:1], (i, 0)),
            "added": jnp.zeros((5, 4)).at[(ids + j) % 5].add(rows),
            "convolved": conv(image, kernel),
            "kernels": conv(image, kernel * (1 + i)),
            "pooled": lax.reduce_window(image, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            "sums": jnp.cumsum(x, 1),
            "sorted": jnp.sort(x, 1),
            "best": jnp.argmax(x, 1),
            "padded": jnp.pad(x, ((1, 0), (0, 2)))[::-1, ::2],
            "joined": jnp.concatenate([x, table[:1, :4] + i]),
            "outer": jnp.einsum("ab,cd->abcd", x[:, :2], rows[:, :2] * (1 + j)),
            "loop": lax.fori_loop(0, 3, lambda k, v: lax.psum(v, "x") * 0.3 + k + 0 * v, x),
            "number": (i * 2 + j)[None],
        }

    def manual_families(x, image, kernel, table, ids):
        specs = (P("x"), P(("x", "y")), P(), P(), P("y"))
        results = {name: P(("x", "y")) for name in (
            "rows", "mixed", "sliced", "updated", "added", "convolved", "kernels", "pooled", "sums", "sorted", "best", "padded", "joined",
            "outer", "loop", "number")}
        return manual(mesh, body, specs, results)(x, image, kernel, table, ids)

    arguments = (noise(1, 4, 4), noise(2, 4, 4, 4, 3), noise(3, 3, 3, 3, 2), noise(4, 5, 4), integers(5, 5, 6))
    return manual_families, arguments, 0, tuple(NamedSharding(mesh, spec) for spec in (P("x"), P(("x", "y")), P(), P(), P("y")))


def manual_part_2x2():
    """Only the pipeline of halves over `data` is manual; `tensor` divides as usual."""
    mesh = auto_mesh(data=2, tensor=2)

    def body(w, x):
        y = jax.nn.tanh(x @ w[0])
        return lax.ppermute(y, "data", [(0, 1), (1, 0)]) + lax.pmean(y, "data")

    def manual_part_2x2(w, x):
        w = lax.with_sharding_constraint(w, NamedSharding(mesh, P("data", None, "tensor")))
        return jax.shard_map(body, mesh=mesh, axis_names={"data"}, in_specs=(P("data"), P("data")), out_specs=P("data"))(w, x)

    w = NamedSharding(mesh, P("data", None, "tensor"))
    return manual_part_2x2, (noise(1, 2, 8, 8), noise(2, 4, 8)), 0, (w, NamedSharding(mesh, P("data")))


# Programs that Partita refuses, with their arguments.


def symbolic_batch():
    x = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), jnp.float32)
    return jax.jit(lambda x: x * 2), (x,)


def factorisation():
    return jax.jit(lambda x: jnp.linalg.cholesky(x)), (jnp.eye(3),)


# jax.export writes no callbacks, so this is StableHLO's text.
def host_callback():
    return """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true} : (tensor<3xf32>) -> tensor<3xf32>
        return %y : tensor<3xf32> }""", ()


def complex_numbers():
    return jax.jit(lambda x: jnp.abs(jnp.fft.fft(x))), (jnp.ones(4),)


def nested_shard_map():
    mesh = auto_mesh(x=2, y=2)
    inner = lambda x: jax.shard_map(lambda y: lax.psum(y, "y"), axis_names={"y"}, in_specs=P("y"), out_specs=P())(x)
    outer = lambda x: jax.shard_map(inner, mesh=mesh, axis_names={"x"}, in_specs=P("x"), out_specs=P("x"))(x)
    return jax.jit(outer), (jnp.ones(8),)


def group_of_an_axis():
    mesh = auto_mesh(x=4)
    sums = lambda x: lax.psum(x, "x", axis_index_groups=[[0, 1], [2, 3]])
    return jax.jit(jax.shard_map(sums, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)), (jnp.ones(8),)


def loop_in_shard_map():
    mesh = auto_mesh(x=4)
    grow = lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: y * 2, x)
    return jax.jit(jax.shard_map(grow, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)), (jnp.ones(8),)


REFUSED = {
    f.__name__: f
    for f in (symbolic_batch, factorisation, host_callback, complex_numbers, nested_shard_map, group_of_an_axis, loop_in_shard_map)
}
PROGRAMS = {
    f.__name__: f
    for f in (
        mlp, gpt, gpt_scan, vit, coatnet, moe, indexing, operations, random_bits, gpt_step, dropout_step, coatnet_step, gpt_2x2, gpt_step_2x2,
        manual_mlp_2x2, manual_ring, manual_gather_scatter_2x2, manual_experts, manual_families, manual_part_2x2)
}


from loop_programs import PROGRAMS as LOOP_PROGRAMS

try:
    from flax_programs import PROGRAMS as FLAX_PROGRAMS
except ImportError:  # without setup.sh --flax
    FLAX_PROGRAMS = {}
PROGRAMS |= FLAX_PROGRAMS | LOOP_PROGRAMS


def dotted(name):
    return re.sub(r"[\['\].]+", ".", name).strip(".")


def named(prefix, tree):
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {dotted(prefix + jax.tree_util.keystr(path)): leaf for path, leaf in leaves}


def write(name):
    function, arguments, *others = PROGRAMS[name]()
    donated = others[0] if others else 0
    options = {"donate_argnums": tuple(range(donated))}
    if len(others) > 1:
        options["in_shardings"] = others[1]
        # The results that replace arguments lie as those do.
        if donated:
            options["out_shardings"] = (*others[1][:donated], None)
    jitted = jax.jit(function, **options)
    exported = export.export(jitted)(*arguments)
    names = list(inspect.signature(function).parameters)
    tensors = {}
    for i, argument in enumerate(arguments):
        kind = "state." if i < donated else "in."
        tensors.update({kind + key: value for key, value in named(names[i], argument).items()})
    tensors = {key: numpy.asarray(value) for key, value in tensors.items()}
    plain = jax.jit(function)
    if not donated:
        results = named("result", plain(*arguments))
        tensors.update({"out." + key.removeprefix("result."): value for key, value in results.items()})
        if hasattr(function, "exact"):
            tensors.update({"exact." + key.removeprefix("result."): value for key, value in named("result", function.exact(*arguments)).items()})
    else:
        for step in range(STEPS):
            results = plain(*arguments)
            arguments = (*results[:donated], *arguments[donated:])
            tensors[f"out{step + 1}.loss"] = results[donated]
        for key, argument in zip(names, arguments[:donated]):
            tensors.update({"after." + name: value for name, value in named(key, argument).items()})
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.mlirbc").write_bytes(exported.mlir_module_serialized)
    tensors = {key: numpy.require(value, requirements="C") for key, value in tensors.items()}
    safetensors.numpy.save_file(tensors, DATA / f"{name}.safetensors")
    if name == "mlp":
        (DATA / "mlp.jax").write_bytes(exported.serialize())
    print(name, len(exported.mlir_module_serialized), exported.mlir_module().count("stablehlo."))


def write_refused(name):
    function, arguments = REFUSED[name]()
    if isinstance(function, str):
        artifact = stablehlo.serialize_portable_artifact_str(function, stablehlo.get_current_version())
    else:
        artifact = export.export(function)(*arguments).mlir_module_serialized
    (DATA / "refused").mkdir(exist_ok=True, parents=True)
    (DATA / "refused" / f"{name}.mlirbc").write_bytes(artifact)
    print(name, len(artifact))


if __name__ == "__main__":
    for name in sys.argv[1:] or [*PROGRAMS, *REFUSED]:
        write_refused(name) if name in REFUSED else write(name)
