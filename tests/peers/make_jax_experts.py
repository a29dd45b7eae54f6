"""Writes tests/data/jax-tiny/ragged_*: products of groups of rows (jax.lax.ragged_dot), whose sizes are data, as jax.export writes them for
CPUs (masks) and for GPUs (a composite), with JAX's outputs and gradients.

Usage: make_jax_experts.py. Needs `setup.sh --jax`. Its output is committed, so tests need no JAX.
"""

import inspect

import jax
import jax.numpy as jnp
import numpy
import safetensors.numpy
from jax import export, lax
from make_jax import DATA, named, noise

ROWS, WIDTH, HIDDEN, EXPERTS, CHOICES = 9, 8, 12, 5, 2


def products(x, w, sizes, target):
    """Group 1 is empty, and the last row is in no group."""

    def loss(x, w):
        y = lax.ragged_dot(x, w, sizes)
        return (y * target).sum(), y

    (_, y), (x_grad, w_grad) = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(x, w)
    return {"y": y, "x_grad": x_grad, "w_grad": w_grad}


def experts(p, x):
    """Rows sorted by their expert, and back."""
    weights, chosen = lax.top_k(jax.nn.softmax(x @ p["router"]), CHOICES)
    weights = weights / weights.sum(-1, keepdims=True)
    ids = chosen.reshape(-1)
    order = jnp.argsort(ids)
    sizes = jnp.bincount(ids, length=EXPERTS)
    rows = x[order // CHOICES]
    hidden = jax.nn.silu(lax.ragged_dot(rows, p["gate"], sizes)) * lax.ragged_dot(rows, p["up"], sizes)
    y = lax.ragged_dot(hidden, p["down"], sizes)
    back = jnp.zeros_like(y).at[order].set(y).reshape(ROWS, CHOICES, WIDTH)
    return (back * weights[..., None]).sum(1)


def write(name, function, arguments, platform):
    exported = export.export(jax.jit(function), platforms=[platform])(*arguments)
    (DATA / f"{name}.mlirbc").write_bytes(exported.mlir_module_serialized)
    tensors = {}
    for parameter, argument in zip(inspect.signature(function).parameters, arguments):
        tensors.update({"in." + key: value for key, value in named(parameter, argument).items()})
    results = named("result", jax.jit(function)(*arguments))
    tensors.update({"out." + key.removeprefix("result."): value for key, value in results.items()})
    tensors = {key: numpy.require(numpy.asarray(value), requirements="C") for key, value in tensors.items()}
    safetensors.numpy.save_file(tensors, DATA / f"{name}.safetensors")
    print(name, len(exported.mlir_module_serialized), exported.mlir_module().count("chlo.ragged_dot"))


if __name__ == "__main__":
    weights = {"router": noise(1, WIDTH, EXPERTS), "gate": noise(2, EXPERTS, WIDTH, HIDDEN, scale=0.35),
               "up": noise(3, EXPERTS, WIDTH, HIDDEN, scale=0.35), "down": noise(4, EXPERTS, HIDDEN, WIDTH, scale=0.3)}
    sizes = jnp.asarray([3, 0, 4, 1], jnp.int32)
    for suffix, platform in (("", "cpu"), ("_gpu", "cuda")):
        write("ragged_products" + suffix, products, (noise(5, ROWS, WIDTH), noise(6, 4, WIDTH, HIDDEN), sizes, noise(7, ROWS, HIDDEN)), platform)
        write("ragged_experts" + suffix, experts, (weights, noise(8, ROWS, WIDTH)), platform)
