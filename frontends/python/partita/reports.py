"""Answers of the compiler as plain objects. Sizes are in bytes, times in seconds.

Each has `facts`, the whole JSON of the command line, and a repr that is a table.
"""

import dataclasses
import os

from . import text


class Facts:
    """An answer with all its facts: a dict in `facts`."""

    def __init__(self, facts):
        self.facts = facts

    def _repr_pretty_(self, printer, cycle):
        printer.text("..." if cycle else repr(self))


class Report(Facts):
    """Sizes of a compiled program.

    devices: of the mesh. memory_bytes: per device, of the device with the most. artifact_bytes; seconds of compiling;
    parameter_elements.
    """

    def __init__(self, facts):
        super().__init__(facts)
        self.devices, self.seconds = facts["devices"], facts["seconds"]
        self.artifact_bytes, self.parameter_elements = facts["artifact_bytes"], facts["parameter_elements"]
        self.memory = {name: value for name, value in facts["memory"].items() if isinstance(value, int)}
        self.memory_bytes = self.memory.get("total", sum(self.memory.values()))

    def line(self):
        return "%s numbers, %s per device on %d, compiled in %.2f s" % (
            text.count(self.parameter_elements), text.size(self.memory_bytes), self.devices, self.seconds)

    def __repr__(self):
        return "<partita.Report: %s>" % self.line()


@dataclasses.dataclass(frozen=True, repr=False)
class Alternative:
    """A plan that was not chosen. slower: its step takes this share longer; why: where the time differs."""
    division: str
    step_seconds: float
    memory_bytes: float
    slower: float
    why: str
    text: str

    def __repr__(self):
        return "%s: %s, +%.1f %%, %s" % (self.division, text.time(self.step_seconds), 100 * self.slower, self.why)


class Plan(Facts):
    """A division of a model over devices.

    text: the plan file. division: it in one line. step_seconds, memory_bytes: of a step, per device, as simulated. why: what the
    step's time is, and why not another plan. alternatives: the runners-up. parts: {part of the step: seconds}.
    """

    def __init__(self, facts):
        super().__init__(facts)
        self.text, self.division = facts["text"], facts.get("division", "")
        self.step_seconds, self.memory_bytes = facts.get("step_seconds"), facts.get("memory_bytes")
        self.parts = facts.get("parts", {})
        self.because = facts.get("because", "")
        self.binds = facts.get("binds", "")
        self.alternatives = [Alternative(row["division"], row["step_seconds"], row["memory_bytes"], row["slower"], row["why"], row["text"])
                             for row in facts.get("alternatives", [])]

    @property
    def why(self):
        lines = [self.because] if self.because else []
        if self.binds:
            lines.append("bound by %s" % self.binds)
        if self.alternatives:
            lines.append("the next best plan is %.1f %% slower: %r" % (100 * self.alternatives[0].slower, self.alternatives[0]))
        return "\n".join(lines)

    def save(self, path):
        """Writes the plan file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)
        return os.fspath(path)

    def __repr__(self):
        if self.step_seconds is None:
            return self.text
        rows = [["", "step", "memory", "", ""],
                ["1. " + self.division, text.time(self.step_seconds), text.size(self.memory_bytes), "", self.binds]]
        rows += [["%d. %s" % (i, each.division), text.time(each.step_seconds), text.size(each.memory_bytes), "+%.1f %%" % (100 * each.slower),
                  each.why] for i, each in enumerate(self.alternatives, 2)]
        return text.table(rows) + "\n" + self.text


@dataclasses.dataclass(frozen=True, repr=False)
class Cost:
    """A collective or a padding of a divided model.

    kind: "all_reduce", "all_gather" ... or "padding". bytes: of one; times: per step. axes: of the mesh. group: devices that take
    part. reason: why it is there. source: where in the model. remedy: what would remove it; may be empty.
    """
    kind: str
    axes: str
    group: int
    bytes: int
    times: int
    reason: str
    source: str
    remedy: str

    @property
    def total_bytes(self):
        return self.bytes * self.times

    def __repr__(self):
        return "%s over %s: %s x %d, %s%s" % (self.kind, self.axes, text.size(self.bytes), self.times, self.reason,
                                              "; gone without " + self.remedy if self.remedy else "")


class Explanation(Facts):
    """What a divided model sends and pads, most bytes first: a sequence of Cost.

    bytes: sent by each device per step, at most. padded_bytes. step_seconds: predicted, if a cluster was given or measured.
    """

    def __init__(self, facts):
        super().__init__(facts)
        self.mesh, self.devices, self.bytes, self.padded_bytes = facts["mesh"], facts["devices"], facts["bytes"], facts["padded_bytes"]
        self.step_seconds = facts.get("predicted", {}).get("step_seconds")
        costs = [Cost(row["kind"], row["axes"], row["group"], row["bytes"], row["times"], row["why"], row["where"], row["without"])
                 for row in facts["collectives"]]
        costs += [Cost("padding", row["axes"], row["devices"], row["bytes"], 1, row["why"], row["most"],
                       row["without"] or row["fits"]) for row in facts["paddings"]]
        self.costs = sorted(costs, key=lambda cost: -cost.total_bytes)

    def __iter__(self):
        return iter(self.costs)

    def __len__(self):
        return len(self.costs)

    def __getitem__(self, index):
        return self.costs[index]

    def __repr__(self):
        rows = [["", "over", "bytes", "times", "why", "at", "gone without"]]
        rows += [[cost.kind, cost.axes, text.size(cost.bytes), str(cost.times), cost.reason, cost.source, cost.remedy] for cost in self]
        return "mesh %s: each of %d devices sends %s a step and pads %s, at most\n%s" % (
            self.mesh, self.devices, text.size(self.bytes), text.size(self.padded_bytes), text.table(rows))


class Verification(Facts):
    """The comparison of a divided model with the undivided one; true if they are equal.

    equal; compared: operations; largest: difference, relative to the tolerance's measure; tolerance; first: the first operation
    that differs, with its layer; unequal_results: names of results.
    """

    def __init__(self, facts):
        super().__init__(facts)
        self.equal, self.compared, self.gradients = facts["equal"], facts["compared"], facts["gradients"]
        self.largest, self.tolerance, self.seconds = facts["largest"], facts["tolerance"], facts["seconds"]
        self.first, self.unequal_results = facts.get("first", ""), facts.get("unequal_results", [])

    def __bool__(self):
        return self.equal

    def __repr__(self):
        found = "equal" if self.equal else "different, first in %s" % self.first
        return "<partita.Verification: %s; %d operations on %d devices differ by at most %.2g, tolerance %.2g>" % (
            found, self.compared, self.facts["devices"], self.largest, self.tolerance)


class Simulation(Facts):
    """A step of a compiled program on a modelled cluster.

    step_seconds; bubble and exposed communication as shares of the step; memory_bytes: at most, per device; fits. ranks: a dict per
    kind of device, times in seconds. operations: the most expensive. A notebook shows the HTML report.
    """

    def __init__(self, facts, page=None):
        super().__init__(facts)
        self.cluster, self.devices, self.step_seconds = facts["cluster"], facts["devices"], facts["step_seconds"]
        self.bubble, self.exposed = facts["bubble"], facts["exposed"]
        self.memory_bytes, self.fits = facts["memory_bytes"], facts["fits"]
        self.ranks, self.operations, self.traffic = facts["ranks"], facts["operations"], facts["traffic"]
        self._page = page

    def _repr_html_(self):
        """The report, as a page inside the notebook."""
        if self._page is None:
            return None
        return '<iframe srcdoc="%s" width="100%%" height="640" style="border:0"></iframe>' % self._page.replace("&", "&amp;").replace('"', "&quot;")

    def __repr__(self):
        rows = [["", "computes", "collectives", "transfers", "bubble", "memory"]]
        share = lambda seconds: "%.1f%%" % (100 * seconds / self.step_seconds if self.step_seconds else 0)
        rows += [[rank["name"], share(rank["compute_seconds"]), share(rank["collectives_seconds"]), share(rank["transfers_seconds"]),
                  share(rank["idle_seconds"]), text.size(rank["memory_bytes"])] for rank in self.ranks]
        return "a step takes %s on %d devices of %s: bubble %.1f%%, exposed communication %.1f%%%s\n%s" % (
            text.time(self.step_seconds), self.devices, self.cluster, 100 * self.bubble, 100 * self.exposed,
            "" if self.fits else "; it does not fit", text.table(rows))


class Description(Facts):
    """A model, an artifact or a plan. kind: "model", "artifact" or "plan". Facts are attributes, as `inputs`, `parameters`."""

    def __init__(self, facts):
        super().__init__(facts)
        self.kind = facts["kind"]

    def __getattr__(self, name):
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError("expected one of %s, found %s" % (", ".join(sorted(self.__dict__.get("facts", {}))), name)) from None

    def __repr__(self):
        rows = []
        for name, value in self.facts.items():
            if isinstance(value, list):
                value = ", ".join("%s: %s" % (each["name"], each.get("type", "")) if isinstance(each, dict) and "name" in each else str(each)
                                  for each in value[:4]) + (", ... (%d)" % len(value) if len(value) > 4 else "")
            elif isinstance(value, dict):
                value = ", ".join(list(value)[:8])
            elif isinstance(value, int) and not isinstance(value, bool) and name.endswith("bytes"):
                value = text.size(value)
            rows.append([name, str(value)])
        return text.table(rows)
