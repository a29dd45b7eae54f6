"""partita.from_jax: a jitted function of JAX as a program that Partita divides and runs. partition_specs: a plan for JAX itself."""

import json
import re
import sys

from partita_runtime import InvalidError

from . import options
from .program import compile as compile_model


def from_jax(function, *args, ignore_shardings=False, **others) -> "JaxProgram":
    """Exports a function of JAX for arguments like `args`, and compiles it; returns a JaxProgram.

        step = partita.from_jax(jax.jit(train_step, donate_argnums=(0, 1)), params, state, x, y)
        params, state, loss = step(params, state, x, y)

    function: what jax.jit returns, or a function, which is jitted. The program is the function's own: shardings of arguments and results,
    and constraints within, divide it over their mesh; ignore_shardings=True leaves them out. Donated arguments become states of the program,
    which a call updates in place.
    others: as for partita.compile, e.g. mesh, shard, plan, target, output, device, threads.
    """
    names, exported = _export(function, args)
    folder = options.Folder()
    path = folder.path("program.mlirbc")
    with open(path, "wb") as file:
        file.write(exported.mlir_module_serialized)
    net = compile_model(path, ignore_shardings=ignore_shardings, **others)
    return JaxProgram(net, exported, names)


def partition_specs(file, function, *args):
    """The PartitionSpecs of a function's arguments, as pytrees like `args`: for jit's in_shardings.

        partita annotate step.mlirbc --plan plan.yaml -o specs.json
        specs = partita.partition_specs("specs.json", train_step, params, state, x, y)

    Arguments that the function does not use, and those that the file leaves out, get P().
    """
    names, exported = _export(function, args)
    import jax  # pylint: disable=import-outside-toplevel

    with open(file, encoding="utf-8") as content:
        given = {argument["name"]: argument["spec"] for argument in json.load(content)["arguments"]}
    kept = exported.module_kept_var_idx
    used = dict(zip(kept, _distinct([names[i] for i in kept])))
    unknown = set(given) - set(used.values())
    if unknown:
        raise InvalidError("%s: expected arguments of the function, found %s" % (file, ", ".join(sorted(unknown))))
    leaves, tree = jax.tree.flatten(args)

    def spec(i):
        return jax.sharding.PartitionSpec(*(axes and tuple(axes) for axes in given.get(used.get(i), ())))

    return jax.tree.unflatten(tree, [spec(i) for i in range(len(leaves))])


def _export(function, args):
    """The names of all arguments, and the function as jax.export gives it."""
    jax = sys.modules.get("jax")
    if jax is None:
        raise InvalidError("expected a function of JAX, found that JAX is not imported")
    from jax import export  # pylint: disable=import-outside-toplevel  # JAX imports it when asked

    jitted = function if hasattr(function, "trace") else jax.jit(function)
    return _names(jitted.trace(*args).jaxpr.jaxpr.debug_info.arg_names), export.export(jitted)(*args)


class JaxProgram:
    """A compiled function of JAX: takes and returns pytrees as the function does.

    program: the Program. Arguments that the function donates are its states; a call writes those that are not what the last call returned.
    """

    def __init__(self, program, exported, names):
        self.program, self._exported = program, exported
        session = program.session
        kept = exported.module_kept_var_idx
        used = _distinct([names[i] for i in kept])
        inputs = {info.name for info in program.inputs}
        states = {info.name: info for info in session.parameters if info.is_updated}
        self._inputs = [(name, i) for name, i in zip(used, kept) if name in inputs]
        self._states = [(name, i) for name, i in zip(used, kept) if name in states]
        self._infos = states
        missing = (inputs | set(states)) - set(used)
        if missing or len(self._inputs) + len(self._states) != len(kept):
            raise InvalidError("expected the program's inputs and states to be the function's arguments, found others: %s" %
                               ", ".join(sorted(missing or set(used) - inputs - set(states))))
        self._places = _places(exported, {name: i for name, i in self._states}, [info.name for info in program.outputs])
        self._returned = {}

    def __call__(self, *args, **kwargs):
        """Runs the function; returns its results as JAX arrays in the function's pytree."""
        import jax  # pylint: disable=import-outside-toplevel

        leaves, tree = jax.tree.flatten((args, kwargs))
        if tree != self._exported.in_tree:
            raise InvalidError("expected arguments of the structure %s, found %s" % (self._exported.in_tree, tree))
        avals = self._exported.in_avals
        session = self.program.session
        for name, i in self._states:
            if self._returned.get(name) is not leaves[i]:
                session.write_parameter(name, _array(jax, leaves[i], avals[i]))
        feeds = {name: _array(jax, leaves[i], avals[i]) for name, i in self._inputs}
        outputs = [jax.numpy.asarray(value) for value in session.run(None, feeds)]
        self._returned = {name: session.read_parameter(self._infos[name], "jax") for name, _ in self._states}
        results = [outputs[place] if isinstance(place, int) else self._returned[place] for place in self._places]
        return jax.tree.unflatten(self._exported.out_tree, results)

    def __repr__(self):
        return "<partita.JaxProgram %s: %s>" % (self._exported.fun_name, self.program.report.line())


def _array(jax, leaf, aval):
    if isinstance(leaf, jax.Array) and leaf.dtype == aval.dtype:
        return leaf
    return jax.numpy.asarray(leaf, dtype=aval.dtype)


def _dotted(path):
    """The name that the compiler gives to a path: "p['w'][0]" is "p.w.0"."""
    name = re.sub(r"[\[./]+", ".", re.sub(r"[\]'\"<>]", "", path))
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name).strip(".")


def _names(paths):
    return [_dotted(path or "") for path in paths]


def _distinct(names):
    """Names as the compiler makes them: arguments without one are numbered, and so are equal ones."""
    seen, result = set(), []
    for i, name in enumerate(names):
        name = name or "arg%d" % i
        other, k = name, i
        while other in seen:
            other, k = "%s_%d" % (name, k), k + 1
        result.append(other)
        seen.add(other)
    return result


def _places(exported, states, outputs):
    """For each result of the function: the number of an output, or the name of a state."""
    aliases, donors = {}, []
    for i, attributes in enumerate(_arguments(exported.mlir_module())):
        argument = exported.module_kept_var_idx[i]
        alias = re.search(r"tf\.aliasing_output = (\d+)", attributes)
        if alias:
            aliases[int(alias.group(1))] = argument
        elif "jax.buffer_donor = true" in attributes:
            donors.append(argument)
    # The compiler takes the first result of the argument's type that is left.
    for argument in donors:
        wanted = _type(exported.in_avals[argument])
        free = [i for i, aval in enumerate(exported.out_avals) if i not in aliases and _type(aval) == wanted]
        if free:
            aliases[free[0]] = argument
    by_argument = {i: name for name, i in states.items()}
    places, next_output = [], 0
    for result in range(len(exported.out_avals)):
        if result in aliases:
            places.append(by_argument[aliases[result]])
        else:
            places.append(next_output)
            next_output += 1
    if next_output != len(outputs):
        raise InvalidError("expected %d outputs of the program, found %d" % (next_output, len(outputs)))
    return places


def _type(aval):
    return aval.shape, str(aval.dtype)


def _arguments(text):
    """The text of each argument of @main."""
    start = text.index("@main(") + len("@main(")
    line = text[start:text.index("\n", start)]
    return re.split(r"%arg\d+: ", line)[1:]
