"""Weights that any language can reproduce bit for bit. The value of an element depends only on its tensor's name and its index:

    hash(name)      = FNV-1a, 64 bit
    bits(name, i)   = splitmix64's output function of hash(name) + (i + 1) * 0x9E3779B97F4A7C15
    u               = (bits >> 40) / 2^24, in [0, 1)
    value           = float32(center + spread * (2 u - 1)), in double precision with center and spread float32

The standard deviation of a tensor is spread / sqrt(3). tests/data/seeded_weights.cc implements the same in C++.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def name_hash(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def seeded_array(name, shape, center, spread):
    count = int(np.prod(shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        z = np.uint64(name_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float64) * 2.0**-24
    values = np.float64(np.float32(center)) + np.float64(np.float32(spread)) * (2.0 * u - 1.0)
    return values.astype(np.float32).reshape(shape)


def seeded_ids(name, shape, count):
    """Integers in [0, count)."""
    return np.floor((seeded_array(name, shape, 0.5, 0.5)).astype(np.float64) * count).clip(0, count - 1).astype(np.int64)


def distribution(name, shape, fan_in=None):
    """(center, spread) that keep activations near unit size and make every parameter matter."""
    leaf = name.rsplit(".", 1)[-1]
    if leaf == "running_var":
        return 1.0, 0.5
    if leaf == "running_mean":
        return 0.0, 0.25
    if "relative_position_bias_table" in name:
        return 0.0, 0.5
    if "embedding" in name and "projection" not in name or "wte" in name or "wpe" in name or "_token" in name:
        return 0.0, 0.08
    if len(shape) == 1:
        return (1.0, 0.25) if leaf in ("weight", "gamma") else (0.0, 0.1)
    fan_in = fan_in or int(np.prod(shape[1:]))
    return 0.0, float((3.0 / fan_in) ** 0.5)
