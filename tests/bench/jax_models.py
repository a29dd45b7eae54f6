"""The benchmarks' models in plain JAX: the same layers at the same shapes, with random weights.

Each parameter names the dimension that the axis "t" divides under M and N; XLA's partitioner propagates from there. Except in
training, batch normalisations are already folded into convolutions, as Partita does when it loads a model.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec


class Parameters:
    """Returns the given values in order. Without values, records the shapes and their divisions."""

    def __init__(self, values=None, training=False):
        self.training = training
        self.values = None if values is None else iter(values)
        self.made = []

    def __call__(self, *shape, on=None):
        if self.values is not None:
            return next(self.values)
        self.made.append((shape, PartitionSpec(*("t" if dim == on else None for dim in range(len(shape))))))
        return jnp.zeros(shape, jnp.float32)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def layer_norm(p, x, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * p(x.shape[-1]) + p(x.shape[-1])


def column(p, x, width):
    """A product with a divided result dimension."""
    return x @ p(x.shape[-1], width, on=1) + p(width, on=0)


def row(p, x, width):
    """A product that sums over a divided dimension."""
    return x @ p(x.shape[-1], width, on=0) + p(width)


def attention(p, x, heads, size, bias):
    """Attention up to its projection; `bias` is added to scores of [batch, heads, query, key]."""
    weight, offset = p(x.shape[-1], 3, heads, size, on=2), p(3, heads, size, on=1)
    q, k, v = jnp.moveaxis(jnp.einsum("ble,ecnh->blcnh", x, weight) + offset, 2, 0)
    scores = jnp.einsum("bqnh,bknh->bnqk", q, k) * size**-0.5 + bias
    out = jnp.einsum("bnqk,bknh->bqnh", jax.nn.softmax(scores, -1), v)
    return jnp.einsum("bqnh,nhe->bqe", out, p(heads, size, heads * size, on=0)) + p(heads * size)


def gpt2(p, ids):
    tokens, length = p(50257, 768), ids.shape[1]
    x = tokens[ids] + p(1024, 768)[:length]
    bias = jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -1e9).astype(x.dtype)
    for _ in range(12):
        x = x + attention(p, layer_norm(p, x, 1e-5), 12, 64, bias)
        y = jax.nn.gelu(column(p, layer_norm(p, x, 1e-5), 3072), approximate=True)
        x = x + row(p, y, 768)
    return layer_norm(p, x, 1e-5) @ tokens.T


def vit_b_16(p, images):
    x = conv_patches(p, images, 768, 16)
    x = jnp.concatenate([jnp.broadcast_to(p(1, 768), (x.shape[0], 1, 768)), x], 1) + p(x.shape[1] + 1, 768)
    for _ in range(12):
        x = x + attention(p, layer_norm(p, x, 1e-12), 12, 64, 0.0)
        x = x + row(p, gelu(column(p, layer_norm(p, x, 1e-12), 3072)), 768)
    return row(p, layer_norm(p, x, 1e-12)[:, 0], 1000)


def conv_patches(p, x, width, size):
    y = jax.lax.conv_general_dilated(x, p(size, size, x.shape[-1], width), (size, size), "VALID",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y.reshape(y.shape[0], -1, width) + p(width)


def minilm(p, inputs):
    ids, mask = inputs
    x = p(30522, 384)[ids] + p(512, 384)[: ids.shape[1]] + p(2, 384)[0]
    x = layer_norm(p, x, 1e-12)
    bias = jnp.where(mask[:, None, None, :] == 0, jnp.finfo(jnp.float32).min, 0.0)
    for _ in range(6):
        x = layer_norm(p, x + attention(p, x, 12, 32, bias), 1e-12)
        x = layer_norm(p, x + row(p, gelu(column(p, x, 1536)), 384), 1e-12)
    pooled = jnp.tanh(x[:, 0] @ p(384, 384) + p(384))
    return x, pooled


def batch_norm(p, x):
    """Batch normalisation; uses the batch's statistics in training."""
    if p.training:
        x = x - x.mean((0, 1, 2))
        x = x * jax.lax.rsqrt((x * x).mean((0, 1, 2)) + 1e-5)
    return x * p(x.shape[-1]) + p(x.shape[-1])


def conv(p, x, width, size=1, stride=1, groups=1, on=None, bias=True, norm=False):
    """A convolution. `on` is "out" if the result's channels are divided, "in" if it sums over divided channels. With `norm`, a batch
    normalisation follows."""
    weight = p(size, size, x.shape[-1] // groups, width, on={None: None, "in": 2, "out": 3}[on])
    y = jax.lax.conv_general_dilated(x, weight, (stride, stride), [(size // 2, size // 2)] * 2,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
    if norm and p.training:
        return batch_norm(p, y)
    return y + p(width, on=0 if on == "out" else None) if bias else y


def pool(x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") * 0.25


def shortcut(p, x, width, stride):
    if stride == 1 and x.shape[-1] == width:
        return x
    return conv(p, pool(x) if stride == 2 else x, width)


def conv_block(p, x, width, stride):
    skip = shortcut(p, x, width, stride)
    y = batch_norm(p, x)
    y = gelu(conv(p, y, 4 * width, on="out", norm=True))
    y = gelu(conv(p, y, 4 * width, size=3, stride=stride, groups=4 * width, on="out", norm=True))
    gate = jax.nn.silu(y.mean((1, 2)) @ p(4 * width, width // 4, on=0) + p(width // 4))
    gate = jax.nn.sigmoid(gate @ p(width // 4, 4 * width, on=1) + p(4 * width, on=0))
    return conv(p, y * gate[:, None, None, :], width, on="in") + skip


def attention_block(p, x, width, stride):
    skip = shortcut(p, x, width, stride)
    y = layer_norm(p, x, 1e-6)
    y = pool(y) if stride == 2 else y
    batch, height, breadth, _ = y.shape
    tokens, heads = height * breadth, width // 32
    y = attention(p, y.reshape(batch, tokens, -1), heads, 32, p(heads, tokens, tokens, on=0))
    x = y.reshape(batch, height, breadth, width) + skip
    return x + row(p, gelu(column(p, layer_norm(p, x, 1e-6), 4 * width)), width)


def coatnet_0(p, x):
    x = gelu(conv(p, x, 64, size=3, stride=2, norm=True))
    x = conv(p, x, 64, size=3, bias=False)
    for block, width, depth in ((conv_block, 96, 2), (conv_block, 192, 3), (attention_block, 384, 5), (attention_block, 768, 2)):
        for index in range(depth):
            x = block(p, x, width, 2 if index == 0 else 1)
    x = layer_norm(p, x.mean((1, 2)), 1e-6)
    x = jnp.tanh(column(p, x, 768))
    return row(p, x, 1000)


def inputs_of(model, batch, random):
    if model is minilm:
        return random.integers(0, 30000, (batch, 128)), jnp.ones((batch, 128), jnp.int32)
    return random.standard_normal((batch, 224, 224, 3), "float32")


MODELS = {"minilm": minilm, "gpt2": gpt2, "vit-b-16": vit_b_16, "coatnet-0": coatnet_0}
