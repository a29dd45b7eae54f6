"""Optimizers of training steps. Each says what `partita compile --train` is given."""

from . import options


class Optimizer:
    """An optimizer and a loss, for `partita.compile(model, train=...)`.

    lr: the learning rate of every step, or a function of the step's number, from 1. Other values are compiled into the step.
    """

    def __init__(self, name, lr, **values):
        self.name, self.lr, self.values = name, lr, {key: value for key, value in values.items() if value is not None}

    def rate(self, step):
        return float(self.lr(step) if callable(self.lr) else self.lr)

    def words(self):
        return ["--train", self.name] + options.words(**self.values)

    def __repr__(self):
        values = "".join(", %s=%r" % each for each in self.values.items())
        return "partita.%s(lr=%r%s)" % (self.name, self.lr, values)


def _adam(name, lr, betas, eps, weight_decay, others):
    return Optimizer(name, lr, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay, **others)


def adamw(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, **others) -> Optimizer:
    """AdamW, with PyTorch's defaults.

    others: clip_norm (of all gradients together), no_decay (globs, "*.bias;*ln*"), trained (globs), lr_scale ("embed*=0.1"), loss
    ("cross-entropy", "mse", or "none" for a model with its own), loss_output, ignore_index, label_smoothing, gradients=True (they
    become outputs).
    """
    return _adam("adamw", lr, betas, eps, weight_decay, others)


def adam(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **others) -> Optimizer:
    """Adam, with PyTorch's defaults; others as for adamw."""
    return _adam("adam", lr, betas, eps, weight_decay, others)


def lamb(lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, **others) -> Optimizer:
    """LAMB; others as for adamw."""
    return _adam("lamb", lr, betas, eps, weight_decay, others)


def sgd(lr=1e-3, momentum=0.0, nesterov=False, weight_decay=0.0, **others) -> Optimizer:
    """Stochastic gradient descent, with PyTorch's defaults; others as for adamw."""
    return Optimizer("sgd", lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, **others)


def adafactor(lr=1e-2, weight_decay=0.0, **others) -> Optimizer:
    """Adafactor; others as for adamw."""
    return Optimizer("adafactor", lr, weight_decay=weight_decay, **others)


def of(train):
    """An Optimizer, from one or from a name such as "adamw"."""
    if train is None or isinstance(train, Optimizer):
        return train
    makers = {"adamw": adamw, "adam": adam, "lamb": lamb, "sgd": sgd, "adafactor": adafactor}
    return makers[train]() if train in makers else Optimizer(train, 1e-3)
