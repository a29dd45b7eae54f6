"""Plans, explanations, verifications, simulations and descriptions of models."""

import os

from . import commands, models, optimizers, options, reports


def _model_words(model, example, dims, train, folder):
    optimizer = optimizers.of(train)
    source, words = models.locate(model, example, folder, training=optimizer is not None)
    return [source] + words + options.words(dim=dims or None) + (optimizer.words() if optimizer else [])


def plan(model, *, cluster, example=None, dims=None, train="adamw", devices=None, precision=None, memory=None, fix=None, target=None,
         output=None, **others) -> reports.Plan:
    """Chooses how to divide the training of a model over a cluster; returns a Plan.

        partita.plan("gpt2/", dims={"batch": 64, "seq": 1024}, cluster="8x a100-80-sxm")

    model, example, dims, train: as for compile. cluster: a cluster.yaml, or a name as "2 nodes x h100-sxm". devices: this many of it.
    precision: "f32", "bf16", "f16" or "auto". memory: most bytes per device. fix: choices that are made, as {"tp": 8}.
    """
    folder = options.Folder()
    words = _model_words(model, example, dims, train, folder)
    words += options.words(cluster=cluster, devices=devices, precision=precision, memory=memory, fix=fix, target=target, output=output, **others)
    return reports.Plan(commands.run("plan", *words).facts)


def _judge(command, model, plan_, mesh, shard, example, dims, train, others, accept=(commands.SUCCESS,)):
    folder = options.Folder()
    words = _model_words(model, example, dims, train, folder)
    words += options.plan_words(plan_, mesh, shard, folder) + options.words(**others)
    return commands.run(command, *words, accept=accept).facts


def explain(model, plan=None, *, mesh=None, shard=None, example=None, dims=None, train=None, cluster=None,
            **others) -> reports.Explanation:  # pylint: disable=redefined-outer-name
    """Lists the collectives and paddings of a divided model, with reasons and remedies: an Explanation, most bytes first.

        for cost in partita.explain("gpt2/", dims={"batch": 8}, mesh={"tensor": 2}, shard="M=tensor,N=tensor"):
            print(cost.kind, cost.bytes, cost.reason, cost.source, cost.remedy)

    plan: a Plan, or the path or text of a plan file; or mesh and shard. cluster: predict times on it. Others: as for compile.
    """
    return reports.Explanation(_judge("explain", model, plan, mesh, shard, example, dims, train, {"cluster": cluster, **others}))


def verify(model, plan=None, *, mesh=None, shard=None, example=None, dims=None, train=None,
           **others) -> reports.Verification:  # pylint: disable=redefined-outer-name
    """Runs a model undivided and divided, on small sizes, and compares every operation: a Verification, true if equal.

    With train, gradients and new parameters too. full=True: all layers of a large model.
    """
    return reports.Verification(_judge("verify", model, plan, mesh, shard, example, dims, train, others,
                                       accept=(commands.SUCCESS, commands.USER_ERROR)))


def annotate(model, output, plan=None, *, mesh=None, shard=None, example=None, dims=None, **others) -> dict:  # pylint: disable=redefined-outer-name
    """Writes a plan down in the model's terms: an .onnx file with device annotations, or JAX's PartitionSpecs (.json, .py).

    plan, mesh, shard: as for explain; without them, the model's own shardings. Returns what was written, in numbers.
    """
    return _judge("annotate", model, plan, mesh, shard, example, dims, None, {"output": output, **others})


def simulate(program, cluster, *, faults=(), trace=None, html=None, operations=None) -> reports.Simulation:
    """Simulates a step of a compiled program on a cluster that need not exist: a Simulation.

    program: what compile returned, or the path of an artifact. faults: as ["device=3:0.5", "link=0-1:0.1"]. trace: write a timeline
    for Perfetto here. html: write the report here; a notebook shows it in any case. operations: list this many.
    """
    folder = options.Folder()
    page = html or folder.path("report.html")
    words = options.words(cluster=cluster, fault=list(faults), trace=trace, html=page, operations=operations)
    facts = commands.run("simulate", getattr(program, "path", None) or os.fspath(program), *words).facts
    with open(page, encoding="utf-8") as file:
        return reports.Simulation(facts, file.read())


def inspect(what, *, example=None, dims=None, **others) -> reports.Description:
    """Describes a model, an artifact (.partita, or what compile returned) or a plan (.yaml, or a Plan): a Description."""
    folder = options.Folder()
    # `what` must outlive the command: a Program removes its temporary artifact.
    path = what.save(folder.path("plan.yaml")) if isinstance(what, reports.Plan) else getattr(what, "path", what)
    source, words = models.locate(path, example, folder)
    return reports.Description(commands.run("inspect", source, *words, *options.words(dim=dims or None, **others)).facts)


class Timetable:
    """The timetable of a pipeline: bubble, the share of the step that ranks wait; svg, its drawing, which notebooks show."""

    def __init__(self, facts, svg):
        self.facts, self.svg, self.bubble = facts, svg, facts["bubble"]

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return "<partita.Timetable: %d ranks, %d stages, %d microbatches, bubble %.1f%%>" % (
            self.facts["ranks"], self.facts["stages"], self.facts["microbatches"], 100 * self.bubble)


def timetable(what, costs=None) -> Timetable:
    """Draws when the stages of a pipeline compute, of a plan or an artifact: a Timetable.

    costs: relative times, as {"F": 1, "B": 2, "T": 0.1} for forward, backward and transfer.
    """
    folder = options.Folder()
    path = what.save(folder.path("plan.yaml")) if isinstance(what, reports.Plan) else getattr(what, "path", what)
    drawing = folder.path("schedule.svg")
    facts = commands.run("inspect", path, "--schedule", "-o", drawing, *options.words(costs=costs)).facts
    with open(drawing, encoding="utf-8") as file:
        return Timetable(facts, file.read())
