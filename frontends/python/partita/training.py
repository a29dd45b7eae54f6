"""Training steps with their state."""

import os
import shutil
import warnings

from partita_runtime import InvalidError, MissingError
from partita_runtime import tensors

from . import batches, commands, text


class State:
    """Parameters and optimizer states of a training step, inside its session.

    A step changes it in place. `parameters()` copies the parameters out, with the names and the kind of tensors of the state_dict
    that it was made from.
    """

    def __init__(self, step, session, given):
        self._owner, self._session = step, session
        self._given = given or {}
        self._kind = next((tensors.kind_of(value) for value in self._given.values() if tensors.kind_of(value)), "numpy")
        self._losses = []

    @property
    def step(self) -> int:
        """Steps taken, including steps before a loaded checkpoint."""
        return self._session.step

    @property
    def losses(self) -> list:
        """The loss of each step that this object has seen: a list of floats."""
        return list(self._losses)

    def parameters(self, kind=None) -> dict:
        """{name: tensor} of all parameters, copied. kind: "numpy", "torch" or "jax"; None: as given to init, else numpy.

        Has the keys of the state_dict given to init, tied weights and constant buffers included, for model.load_state_dict.
        """
        kind = kind or (self._kind if self._kind != "dlpack" else "numpy")
        infos = _parameters_of(self._session)
        if not self._given:
            return {name: _read(self._session, info, kind) for name, info in infos.items()}
        result = {}
        for name in self._given:
            info = infos.get(name) or infos.get(self._owner.alias_of(name, self._given, infos))
            result[name] = _read(self._session, info, kind) if info else self._given[name]
        return result

    def optimizer_states(self, kind="numpy") -> dict:
        """{name: tensor} of the optimizer's states, copied."""
        return {info.name: self._session.read_parameter(info, kind) for info in self._session.parameters if info.is_state}

    def save(self, folder):
        """Saves a checkpoint in a new folder below `folder`. Keeps the newest three."""
        self._session.save_checkpoint(folder)

    def load(self, folder):
        """Loads the newest complete checkpoint below `folder`, saved under any plan."""
        self._session.load_checkpoint(folder)

    def _repr_svg_(self):
        """The losses as a curve, which notebooks show."""
        return text.curve(self._losses, "loss of step %d to %d" % (self.step - len(self._losses) + 1, self.step)) if self._losses else None

    def __repr__(self):
        loss = ", loss %.4f" % self._losses[-1] if self._losses else ""
        count = sum(1 for info in self._session.parameters if not info.is_state)
        return "<partita.State: step %d, %d parameters%s>" % (self.step, count, loss)


class TrainingStep:
    """A compiled training step.

        step = partita.compile(model, example=(ids, y), train=partita.adamw(3e-4, clip_norm=1))
        state = step.init(model.state_dict())
        state, losses = step.train(state, loader, steps=1000)    # or step by step: state, loss = step(state, ids, y)
        model.load_state_dict(state.parameters())
    """

    def __init__(self, program, optimizer):
        self.program, self.optimizer = program, optimizer
        self._state = None

    @property
    def path(self):
        return self.program.path

    @property
    def report(self):
        return self.program.report

    @property
    def inputs(self) -> tuple:
        """What a call takes after the state: a tuple of TensorInfo, the targets of the loss included."""
        return self.program.session.data_inputs

    def init(self, state_dict=None) -> State:
        """Begins at step 0 with the weights of the model's file, or of `state_dict`: {name: tensor}. Ends an earlier State.

        Every parameter that is trained must be there, with its shape and type. Parameters that are not trained have the values of the
        model's file: others are refused. The rest, such as tied copies and masks, is kept for State.parameters(); a PartitaWarning
        names floating-point tensors of the rest that share no memory with a parameter, as their values have no effect.
        """
        self._state = None
        self.program.unload()  # also after an init that failed
        session = self.program.session
        if state_dict is not None:
            infos = _parameters_of(session)
            self._check(session, infos, state_dict)
            for name, info in infos.items():
                if info.is_updated:
                    session.write_parameter(info.name, _as_stored(info, state_dict[name]))
        self._state = State(self, session, dict(state_dict) if state_dict is not None else None)
        return self._state

    def __call__(self, state, *batch, learning_rate=None, **feeds):
        """Takes one step on a batch, in the order of `inputs` or by name. Returns (state, loss); the loss is a float.

        learning_rate: of this step; None: the optimizer's.
        """
        if state is not self._state:
            raise InvalidError("expected the state of this step's last init, found another; call init again to begin anew")
        session = self.program.session
        rate = self.optimizer.rate(session.step + 1) if learning_rate is None else learning_rate
        loss = session.train_step(*batch, learning_rate=rate, **feeds)
        state._losses.append(loss)  # pylint: disable=protected-access
        return state, loss

    def train(self, state, loader, *, steps=None, on_step=None, depth=1):
        """Takes a step on each batch of a DataLoader or any iterable. Returns (state, losses): the losses of these steps as floats.

        A batch is a tuple or list in the order of `inputs`, a mapping by name, or one tensor. The next `depth` batches are fetched on a
        thread while a step runs, as `partita.ahead` does. steps: how many, beginning again when the loader ends; None: once over it.
        on_step(state, loss) is called after each step. Errors of the loader are raised here, after the steps before them.
        """
        losses = []
        with batches.ahead(batches.repeated(loader, steps), depth) as fetched:
            for batch in fetched:
                values, feeds = batches.arguments(batch)
                state, loss = self(state, *values, **feeds)
                losses.append(loss)
                if on_step is not None:
                    on_step(state, loss)
        return state, losses

    def save(self, path) -> str:
        """Copies the artifact, which partita train and Session take."""
        shutil.copyfile(self.path, path)
        return os.fspath(path)

    def __repr__(self):
        return "<partita.TrainingStep %s, %r: %s>" % (self.path, self.optimizer, self.report.line())

    @staticmethod
    def alias_of(name, given, names):
        """The parameter whose memory the entry `name` shares, as tied weights do; None if there is none."""
        address = _address(given[name])
        for other in names:
            if other in given and address is not None and _address(given[other]) == address:
                return other
        return None

    def _check(self, session, infos, given):
        missing = [name for name, info in infos.items() if info.is_updated and name not in given]
        if missing:
            raise MissingError("expected the parameters %s in the state_dict, found %s" % (text.some(missing), text.some(given)))
        kinds = {name: tensors.kind_of(given[name]) for name, info in infos.items() if not info.is_updated and name in given}
        fixed = [name for name, kind in kinds.items() if not tensors.is_same(
            _read(session, infos[name], kind if kind == "torch" else "numpy"), given[name], infos[name].dtype)]
        if fixed:
            raise InvalidError("expected the values of the model's file for %s, which this step does not train, found others; compile the "
                               "model with these values, or train all parameters" % text.some(fixed))
        unknown = [name for name, value in given.items() if name not in infos and tensors.is_floating(value) and
                   self.alias_of(name, given, infos) is None]
        if unknown:
            warnings.warn("this step has no parameters %s of the state_dict: their values are not used, and State.parameters() returns them "
                          "as they were given" % text.some(unknown), commands.PartitaWarning, stacklevel=3)


def _parameters_of(session):
    """{name in the module: ParameterInfo}. An ONNX export with folded constants has the weight NAME of a layer transposed, as NAME.T."""
    return {info.name[:-2] if _is_transposed(info) else info.name: info for info in session.parameters if not info.is_state}


def _is_transposed(info):
    return info.name.endswith(".T")


def _read(session, info, kind):
    value = session.read_parameter(info, kind)
    return value.T if _is_transposed(info) else value


def _as_stored(info, value):
    if not _is_transposed(info):
        return value
    return value.T if hasattr(value, "T") else [list(row) for row in zip(*value)]


def _address(value):
    if tensors.kind_of(value) == "torch":
        return value.data_ptr(), tuple(value.shape)
    if tensors.kind_of(value) == "numpy":
        return value.__array_interface__["data"][0], value.shape
    return None
