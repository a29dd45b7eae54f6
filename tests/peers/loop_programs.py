"""Programs of make_jax.py whose loops run as often as their data says."""

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P


def noise(seed, *shape, scale=1.0):
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape) * scale, jnp.float32)


def newton(square):
    """The root of a number, and the number of steps to it."""
    step = lambda s: ((s[0] + square / s[0]) / 2, s[1] + 1)
    return lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - square) > 1e-5 * square, step, (square, 0))


def loop_newton():
    def loop_newton(square):
        root, steps = newton(square)
        return {"root": root, "steps": steps}

    return loop_newton, (jnp.float32(1234.5),)


def power_iteration(w, x):
    def step(s):
        y = jnp.tanh(s[0] @ w)
        return y, jnp.abs(y - s[0]).max(), s[2] + 1

    return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 100), step, (x, jnp.float32(1), 0))


def loop_matmul():
    def loop_matmul(p, x):
        return power_iteration(p["w"], x)

    return loop_matmul, ({"w": noise(1, 8, 8, scale=0.3), "b": noise(2, 8)}, noise(3, 6, 8))


def loop_nested():
    """Lengths of Collatz's sequences, summed."""

    def length(n):
        half = lambda n: lax.while_loop(lambda n: n % 2 == 0, lambda n: n // 2, n)
        return lax.while_loop(lambda s: s[0] > 1, lambda s: (half(3 * half(s[0]) + 1), s[1] + 1), (half(n), 0))[1]

    def loop_nested(first, last):
        return lax.while_loop(lambda s: s[0] <= last, lambda s: (s[0] + 1, s[1] + length(s[0])), (first, 0))[1]

    return loop_nested, (jnp.int32(3), jnp.int32(40))


def loop_bounds():
    """Writes rows of an array, from one bound to another."""

    def loop_bounds(x, low, high):
        def step(i, s):
            row = lax.dynamic_index_in_dim(s, i - 1, keepdims=False) * 0.5 + i
            return lax.dynamic_update_index_in_dim(s, row, i, 0)

        return lax.fori_loop(low, high, step, x)

    return loop_bounds, (noise(1, 9, 4), jnp.int32(2), jnp.int32(7))


def loop_never():
    """No iteration: a lower bound above the upper one."""

    def loop_never(x, low):
        return lax.fori_loop(low, 3, lambda i, y: y * 2 + i, x), x

    return loop_never, (noise(1, 3, 4), jnp.int32(5))


def loop_in_scan():
    def loop_in_scan(squares):
        def step(total, square):
            root, steps = newton(square)
            return total + steps, root

        return lax.scan(step, 0, squares)

    return loop_in_scan, (jnp.asarray([4.0, 1e4, 2.5, 77], jnp.float32),)


def loop_batched():
    """Each element has its own number of steps."""

    def loop_batched(squares, w):
        roots, steps = jax.vmap(newton)(squares)
        x = jax.vmap(lambda x: power_iteration(w, x)[0])(roots[:, None] * jnp.ones((1, 8), jnp.float32))
        return {"roots": roots, "steps": steps, "x": x}

    return loop_batched, (jnp.asarray([4.0, 1e4, 2.5, 77, 0.01], jnp.float32), noise(1, 8, 8, scale=0.3))


def loop_in_branch():
    """The loop of a branch that is not taken would not end."""

    def loop_in_branch(x, n):
        endless = lambda y: lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 2, s[1] + 1), (n, y))[1]
        other = lambda y: lax.fori_loop(0, n, lambda i, y: y + i, y)
        return lax.cond(n % 2 == 0, endless, other, x), lax.switch(n % 3, [other, lambda y: -y, endless], x)

    return loop_in_branch, (noise(1, 3, 4), jnp.int32(7))


def loop_2x2():
    """Rows on one axis of the devices, columns on the other."""
    mesh = jax.make_mesh((2, 2), ("data", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    place = lambda *axes: NamedSharding(mesh, P(*axes))

    def loop_2x2(p, x):
        def step(s):
            hidden = lax.with_sharding_constraint(jnp.tanh(s[0] @ p["up"]), place("data", "tensor"))
            y = 0.5 * (s[0] + hidden @ p["down"])
            return y, jnp.sqrt(((y - s[0]) ** 2).mean()), s[2] + 1

        return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 50), step, (x, jnp.float32(1), 0))

    weights = {"up": noise(1, 6, 10, scale=0.2), "down": noise(2, 10, 6, scale=0.2)}
    shardings = ({"up": place(None, "tensor"), "down": place("tensor", None)}, place("data", None))
    return loop_2x2, (weights, noise(3, 6, 6)), 0, shardings


def loop_sum():
    """It has no end for zeros."""

    def loop_sum(x):
        return lax.while_loop(lambda x: x.sum() < 100, lambda x: x * 2, x)

    return loop_sum, (jnp.ones(3),)


def loop_step():
    """Steps of gradient descent until the loss is small, in one run of the program. The weights are donated."""

    def loss_of(w, x, y):
        return ((x @ w - y) ** 2).mean()

    def loop_step(w, limit, x, y):
        def step(s):
            loss, gradient = jax.value_and_grad(loss_of)(s[0], x, y)
            return s[0] - 0.2 * gradient, loss

        w, loss = lax.while_loop(lambda s: s[1] > limit, step, (w, jnp.float32(1e3)))
        return w, limit * 0.7, loss

    x = noise(1, 12, 4)
    return loop_step, (noise(2, 4, 3), jnp.float32(0.5), x, x @ noise(3, 4, 3)), 2


PROGRAMS = {
    f.__name__: f
    for f in (loop_newton, loop_matmul, loop_nested, loop_bounds, loop_never, loop_in_scan, loop_batched, loop_in_branch, loop_2x2, loop_sum, loop_step)
}
