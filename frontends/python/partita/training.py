"""Training steps with their state."""

import os
import shutil

from partita_runtime import InvalidError, MissingError
from partita_runtime import tensors

from . import text


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
        infos = {info.name: info for info in self._session.parameters if not info.is_state}
        result = {}
        for name in self._given:
            info = infos.get(name) or infos.get(self._owner.alias_of(name, self._given, infos))
            result[name] = self._session.read_parameter(info, kind) if info else self._given[name]
        for name, info in infos.items():
            if name not in result and not self._given:
                result[name] = self._session.read_parameter(info, kind)
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
        for ids, y in loader:
            state, loss = step(state, ids, y)
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

        Every parameter that is trained must be there, with its shape and type. Others, such as tied copies and buffers that do not
        change, are kept for State.parameters().
        """
        self._state = None
        self.program.unload()  # also after an init that failed
        session = self.program.session
        if state_dict is not None:
            self._write(session, state_dict)
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

    def _write(self, session, state_dict):
        infos = [info for info in session.parameters if not info.is_state]
        missing = [info.name for info in infos if info.is_updated and info.name not in state_dict]
        if missing:
            raise MissingError("expected the parameters %s in the state_dict, found %s" % (
                ", ".join(missing[:5]) + (" and %d more" % (len(missing) - 5) if len(missing) > 5 else ""),
                ", ".join(list(state_dict)[:5]) + (" ..." if len(state_dict) > 5 else "") or "nothing"))
        for info in infos:
            if info.is_updated:
                session.write_parameter(info.name, state_dict[info.name])


def _address(value):
    if tensors.kind_of(value) == "torch":
        return value.data_ptr(), tuple(value.shape)
    if tensors.kind_of(value) == "numpy":
        return value.__array_interface__["data"][0], value.shape
    return None
