"""Programs of Flax (linen and nnx) and optax for make_jax.py: models, whole training steps, and dropout. Needs `setup.sh --jax --flax`.

A function returns what those of make_jax.py return: the function, its arguments, and the number of donated ones.

Training steps avoid parameters whose exact gradient is 0: biases of keys, and of layers before a batch normalisation. Their computed
gradient is rounding noise, which Adam divides by its own size, so that two correct compilers train them differently.
"""

import functools

import jax
import jax.numpy as jnp
import numpy
import optax
from flax import linen, nnx
from flax.training import train_state


def noise(seed, *shape, scale=1.0):
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape) * scale, jnp.float32)


def integers(seed, limit, *shape):
    return jnp.asarray(numpy.random.default_rng(seed).integers(0, limit, shape), jnp.int32)


def labels_loss(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


class Block(linen.Module):
    """A transformer's layer. `dropout` is its rate."""

    heads: int = 2
    dropout: float = 0.0
    dtype: jnp.dtype = jnp.float32

    @linen.compact
    def __call__(self, x, mask=None, train=False):
        y = linen.LayerNorm(dtype=self.dtype)(x)
        y = linen.MultiHeadDotProductAttention(self.heads, dtype=self.dtype, dropout_rate=self.dropout, deterministic=not train,
                                               use_bias=False)(y, mask=mask)
        x = x + linen.Dropout(self.dropout, deterministic=not train)(y)
        y = linen.LayerNorm(dtype=self.dtype)(x)
        y = linen.gelu(linen.Dense(4 * x.shape[-1], dtype=self.dtype)(y))
        y = linen.Dense(x.shape[-1], dtype=self.dtype)(y)
        return x + linen.Dropout(self.dropout, deterministic=not train)(y)


class Gpt(linen.Module):
    vocabulary: int = 40
    width: int = 16
    layers: int = 2
    dropout: float = 0.0
    dtype: jnp.dtype = jnp.float32

    @linen.compact
    def __call__(self, ids, train=False):
        wte = linen.Embed(self.vocabulary, self.width, dtype=self.dtype)
        x = wte(ids) + self.param("wpe", linen.initializers.normal(0.1), (12, self.width)).astype(self.dtype)[: ids.shape[1]]
        mask = linen.make_causal_mask(ids)
        for _ in range(self.layers):
            x = Block(dropout=self.dropout, dtype=self.dtype)(x, mask, train)
        return wte.attend(linen.LayerNorm(dtype=self.dtype)(x))


def rates():
    return optax.warmup_cosine_decay_schedule(1e-3, 1e-2, warmup_steps=2, decay_steps=6, end_value=1e-3)


def linen_step():
    """Dropout, attention's too; gradients are clipped by their norm; AdamW decays matrices only, at a rate that warms up."""
    model = Gpt(dropout=0.1)
    ids, targets = integers(8, 40, 3, 12), integers(9, 40, 3, 12)
    params = model.init(jax.random.key(0), ids)["params"]
    decayed = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    update = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(rates(), weight_decay=0.1, mask=decayed))
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=update)
    state = state.replace(step=jnp.int32(0))

    def linen_step(state, key, ids, targets):
        key, now = jax.random.split(key)

        def loss_of(params):
            return labels_loss(state.apply_fn({"params": params}, ids, train=True, rngs={"dropout": now}), targets)

        loss, gradients = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=gradients), key, loss

    return linen_step, (state, jax.random.PRNGKey(3), ids, targets), 2


class ConvNet(linen.Module):
    @linen.compact
    def __call__(self, x, train=False):
        for width, stride in ((8, 1), (16, 2)):
            x = linen.Conv(width, (3, 3), (stride, stride), use_bias=False)(x)
            x = linen.relu(linen.BatchNorm(use_running_average=not train, momentum=0.9)(x))
        y = linen.Conv(16, (3, 3), feature_group_count=16, use_bias=False)(x)
        x = linen.max_pool(x + linen.silu(linen.GroupNorm(4)(y)), (2, 2), (2, 2))
        x = linen.Dropout(0.2, deterministic=not train)(x.mean((1, 2)))
        return linen.Dense(10)(x)


def linen_conv_step():
    """A convolution net with statistics of batches; Nesterov's momentum at a rate that decays in steps, with weight decay."""
    model = ConvNet()
    images, targets = noise(8, 4, 12, 12, 3), integers(9, 10, 4)
    variables = model.init(jax.random.key(0), images)
    rate = optax.piecewise_constant_schedule(0.05, {2: 0.5, 4: 0.1})
    update = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(rate, momentum=0.9, nesterov=True))

    def linen_conv_step(params, stats, moments, key, images, targets):
        def loss_of(params):
            logits, changed = model.apply({"params": params, "batch_stats": stats}, images, train=True, mutable=["batch_stats"],
                                          rngs={"dropout": key})
            return labels_loss(logits, targets), changed["batch_stats"]

        (loss, new_stats), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
        changes, moments = update.update(gradients, moments, params)
        return optax.apply_updates(params, changes), new_stats, moments, jax.random.fold_in(key, 1), loss

    params, stats = variables["params"], variables["batch_stats"]
    return linen_conv_step, (params, stats, update.init(params), jax.random.PRNGKey(5), images, targets), 4


def linen_scan():
    """Layers as nn.scan stacks them, each rematerialised: the loss and its gradients."""

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            return linen.remat(Block)()(x, mask), None

    class Scanned(linen.Module):
        @linen.compact
        def __call__(self, ids):
            wte = linen.Embed(40, 16)
            layers = linen.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3, in_axes=linen.broadcast)
            x, _ = layers()(wte(ids), linen.make_causal_mask(ids))
            return wte.attend(linen.LayerNorm()(x))

    model, ids, targets = Scanned(), integers(8, 40, 2, 12), integers(9, 40, 2, 12)

    def linen_scan(params, ids, targets):
        loss, gradients = jax.value_and_grad(lambda p: labels_loss(model.apply({"params": p}, ids), targets))(params)
        return {"loss": loss, "gradients": gradients}

    return linen_scan, (model.init(jax.random.key(0), ids)["params"], ids, targets)


def linen_decode():
    """One token with the cache of keys and values that linen's attention keeps, and a recurrent layer."""

    class Decoder(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = linen.MultiHeadDotProductAttention(2, decode=True)(linen.LayerNorm()(x))
            return linen.RNN(linen.GRUCell(8))(x + y)

    model, token = Decoder(), noise(7, 2, 1, 8)
    variables = model.init(jax.random.key(0), jnp.ones((2, 6, 8)))
    for seed in range(2):
        variables = {**variables, **model.apply(variables, noise(seed, 2, 1, 8), mutable=["cache"])[1]}

    def linen_decode(params, cache, token):
        y, changed = model.apply({"params": params, "cache": cache}, token, mutable=["cache"])
        return {"y": y, "cache": changed["cache"]}

    return linen_decode, (variables["params"], variables["cache"], token)


def linen_bf16():
    """Products and activations in bf16, parameters in f32."""
    model, ids = Gpt(dtype=jnp.bfloat16), integers(8, 40, 3, 12)

    def linen_bf16(params, ids):
        return {"logits": model.apply({"params": params}, ids).astype(jnp.float32)}

    # Without rounding to bf16 in between: two correct compilers differ from each other as much as from this.
    linen_bf16.exact = lambda params, ids: {"logits": Gpt().apply({"params": params}, ids)}
    return linen_bf16, (model.init(jax.random.key(0), ids)["params"], ids)


class NnxBlock(nnx.Module):
    def __init__(self, width, rngs):
        self.norm1, self.norm2 = nnx.LayerNorm(width, rngs=rngs), nnx.RMSNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, width, decode=False, use_bias=False, rngs=rngs)
        self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.dropout(self.attention(self.norm1(x), mask=mask))
        return x + self.dropout(self.down(nnx.swish(self.up(self.norm2(x)))))


class NnxGpt(nnx.Module):
    def __init__(self, rngs, width=16):
        self.wte = nnx.Embed(40, width, rngs=rngs)
        self.blocks = nnx.List([NnxBlock(width, rngs) for _ in range(2)])
        self.norm, self.head = nnx.LayerNorm(width, rngs=rngs), nnx.Linear(width, 40, use_bias=False, rngs=rngs)

    def __call__(self, ids):
        x = self.wte(ids)
        for layer in self.blocks:
            x = layer(x, nnx.make_causal_mask(ids))
        return self.head(self.norm(x))


def nnx_step():
    """A model, its optimizer and the counters of its random numbers as one state, as nnx.split gives it. Lion, with clipping by value."""
    model = NnxGpt(nnx.Rngs(0, dropout=jax.random.key(1, impl="threefry2x32")))
    update = optax.chain(optax.clip(0.02), optax.lion(optax.linear_schedule(1e-3, 1e-4, 4), weight_decay=0.1))
    optimizer = nnx.Optimizer(model, update, wrt=nnx.Param)
    graph, state = nnx.split((model, optimizer))
    # Keys are arguments as numbers, which files hold.
    is_key = lambda leaf: jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    plain = lambda tree: jax.tree.map(lambda leaf: jax.random.key_data(leaf) if is_key(leaf) else leaf, tree)
    keys = jax.tree.map(is_key, state)

    def nnx_step(state, ids, targets):
        state = jax.tree.map(lambda key, leaf: jax.random.wrap_key_data(leaf) if key else leaf, keys, state)
        model, optimizer = nnx.merge(graph, state)
        model.train()
        loss, gradients = nnx.value_and_grad(lambda model: labels_loss(model(ids), targets))(model)
        optimizer.update(model, gradients)
        return plain(nnx.state((model, optimizer))), loss

    return nnx_step, (plain(state), integers(8, 40, 3, 12), integers(9, 40, 3, 12)), 1


def nnx_vit():
    """A vision transformer, evaluated."""

    class Vit(nnx.Module):
        def __init__(self, rngs, width=16):
            self.patch = nnx.Conv(3, width, (4, 4), (4, 4), padding="VALID", rngs=rngs)
            self.cls = nnx.Param(noise(3, 1, 1, width, scale=0.1))
            self.positions = nnx.Param(noise(4, 1, 17, width, scale=0.1))
            self.blocks = nnx.List([NnxBlock(width, rngs) for _ in range(2)])
            self.norm, self.head = nnx.LayerNorm(width, rngs=rngs), nnx.Linear(width, 10, rngs=rngs)

        def __call__(self, images):
            x = self.patch(images).reshape(images.shape[0], -1, 16)
            x = jnp.concatenate([jnp.broadcast_to(self.cls[...], (x.shape[0], 1, 16)), x], 1) + self.positions[...]
            for layer in self.blocks:
                x = layer(x, None)
            return self.head(self.norm(x)[:, 0])

    model = Vit(nnx.Rngs(0))
    model.eval()
    graph, params, others = nnx.split(model, nnx.Param, ...)

    def nnx_vit(params, images):
        return nnx.merge(graph, params, others)(images)

    return nnx_vit, (nnx.to_pure_dict(params), noise(8, 2, 16, 16, 3))


def optax_steps():
    """Other optimizers: Adafactor and LAMB for parts of the parameters, a part that is frozen, and gradients summed over two steps."""
    params = {"embedding": noise(1, 40, 16, scale=0.5), "up": noise(2, 16, 32, scale=0.25), "gain": 1 + noise(3, 32, scale=0.1),
              "down": noise(4, 32, 16, scale=0.2)}
    kinds = {"embedding": "adafactor", "up": "lamb", "gain": "frozen", "down": "lamb"}
    update = optax.multi_transform({"adafactor": optax.adafactor(1e-2, min_dim_size_to_factor=8), "lamb": optax.lamb(1e-2),
                                    "frozen": optax.set_to_zero()}, kinds)
    update = optax.MultiSteps(optax.chain(optax.adaptive_grad_clip(0.1), update), every_k_schedule=2)

    def optax_steps(params, state, average, ids, targets):
        def loss_of(p):
            return labels_loss(jax.nn.relu(p["embedding"][ids] @ p["up"] * p["gain"]) @ p["down"] @ p["embedding"].T, targets)

        loss, gradients = jax.value_and_grad(loss_of)(params)
        changes, state = update.update(gradients, state, params)
        params = optax.apply_updates(params, changes)
        return params, state, optax.incremental_update(params, average, 0.1), loss

    average = jax.tree.map(jnp.copy, params)
    return optax_steps, (params, update.init(params), average, integers(8, 40, 3, 12), integers(9, 40, 3, 12)), 3


def linen_dropout():
    """Dropout alone, of broadcast dimensions too: the masks are results, and must be equal bit for bit."""

    def linen_dropout(key, x):
        kept = {}
        for name, rate, dims in (("plain", 0.1, ()), ("half", 0.5, ()), ("rows", 0.3, (1,)), ("batch", 0.7, (0,))):
            layer = linen.Dropout(rate, broadcast_dims=dims, deterministic=False)
            y = layer.apply({}, x, rngs={"dropout": key})
            kept[name] = y != 0
            kept["values_" + name] = y
        layer = nnx.Dropout(0.4, rngs=nnx.Rngs(dropout=jax.random.wrap_key_data(key)))
        kept["nnx"] = layer(x) != 0
        kept["nnx_again"] = layer(x) != 0
        return kept

    return linen_dropout, (jax.random.PRNGKey(11), 1 + jnp.abs(noise(1, 4, 6, 10)))


PROGRAMS = {
    f.__name__: f
    for f in (linen_step, linen_conv_step, linen_scan, linen_decode, linen_bf16, linen_dropout, nnx_step, nnx_vit, optax_steps)
}
