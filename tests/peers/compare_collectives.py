"""Collectives of the divided programs of make_jax.py: Partita's (`partita explain`) beside those of XLA's optimized program for four CPU
devices.

Usage: compare_collectives.py PARTITA [NAME...]. Needs `setup.sh --jax --flax`; tests/bench/jax.md explains its table.

A column is: collectives, tensors in them, and bytes that a device sends in all. Both systems' bytes are counted as rings send them: an
all-reduce of T bytes over n devices sends 2 (n - 1) / n T, an all-gather (n - 1) / n of its result, a reduce-scatter or all-to-all
(n - 1) / n of its operand, and a permutation its operand. XLA joins collectives into one of several tensors; `explain` lists Partita's
before they are joined, one tensor each.
"""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys

import make_jax
import jax

KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter", "all-to-all": "all_to_all",
         "collective-permute": "permute"}
BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
LINE = re.compile(r"^\s*(?:ROOT )?%[\w.\-]+ = (.*?) (" + "|".join(KINDS) + r")(?:-start)?\((.*)$")


class Count:
    def __init__(self):
        self.number, self.tensors, self.bytes = 0, 0, 0.0

    def add(self, number, tensors, moved):
        self.number += number
        self.tensors += tensors
        self.bytes += moved

    def __str__(self):
        return f"{self.number:4d} {self.tensors:4d} {self.bytes:7.0f}" if self.number else f"{'-':>4} {'':4} {'':7}"


def group_size(line):
    """The number of devices in a group of a collective, in any of the three ways that XLA writes it."""
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return match.group(1).count(",") + 1
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(match.group(1))
    match = re.search(r"replica_groups=mesh\[([^\]]*)\].*?\{('[^}]*')\}", line)
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", match.group(1)))
    return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", match.group(2)))


def sizes(types):
    return [BYTES[kind] * math.prod(int(n) for n in dims.split(",") if n) for kind, dims in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", types)]


def moved(kind, total, group):
    """Bytes that a device sends; `total` is the size of the result."""
    share = (group - 1) / group
    return {"all_reduce": 2 * share * total, "all_gather": share * total, "reduce_scatter": (group - 1) * total,
            "all_to_all": share * total, "permute": total}[kind]


def of_xla(text):
    """Counts of an optimized program. Bodies of loops count as often as they run."""
    bodies, name = {}, None
    for line in text.splitlines():
        if match := re.match(r"^(ENTRY )?%([\w.\-]+) .*\{$", line):
            name = "ENTRY" if match.group(1) else match.group(2)
            bodies[name] = []
        elif name:
            bodies[name].append(line)
    counts = collections.defaultdict(Count)

    def visit(name, times):
        for line in bodies[name]:
            if match := LINE.match(line):
                kind, tensors = KINDS[match.group(2)], sizes(match.group(1))
                group = 1 if kind == "permute" else group_size(line)
                # An all-to-all of a tuple has a tensor per device.
                number = 1 if kind == "all_to_all" else len(tensors)
                counts[kind].add(times, times * number, times * moved(kind, sum(tensors), group))
            elif " while(" in line:
                trips = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
                visit(re.search(r"body=%([\w.\-]+)", line).group(1), times * int(trips.group(1) if trips else 1))
            elif match := re.search(r" call\(.*to_apply=%([\w.\-]+)", line):
                visit(match.group(1), times)

    visit("ENTRY", 1)
    return counts


def compile_with_xla(name):
    function, arguments, donated, shardings = make_jax.PROGRAMS[name]()
    options = {"donate_argnums": tuple(range(donated)), "in_shardings": shardings}
    if donated:
        options["out_shardings"] = (*shardings[:donated], None)
    return jax.jit(function, **options).lower(*arguments).compile().as_text()


def of_partita(partita, name):
    done = subprocess.run([partita, "explain", str(make_jax.DATA / f"{name}.mlirbc"), "--json"], capture_output=True, text=True, check=True)
    counts = collections.defaultdict(Count)
    for row in json.loads(done.stdout)["collectives"]:
        # An exchange sends each device's part of a tensor to the devices that need it: permutations.
        kind = "permute" if row["kind"] == "exchange" else row["kind"]
        counts[kind].add(row["times"], row["times"], row["times"] * row["bytes"])
    return counts


def main():
    partita, *names = sys.argv[1:]
    names = names or [name for name, make in make_jax.PROGRAMS.items() if len(make()) > 3]
    print(f"{'program':<28}{'kind':<16}{'Partita':<20}{'XLA':<20}")
    for name in names:
        ours, theirs = of_partita(str(pathlib.Path(partita).resolve()), name), of_xla(compile_with_xla(name))
        for kind in KINDS.values():
            if kind in ours or kind in theirs:
                print(f"{name:<28}{kind:<16}{str(ours[kind]):<20}{str(theirs[kind]):<20}")
        totals = [sum(count.bytes for count in counts.values()) for counts in (ours, theirs)]
        print(f"{name:<28}{'bytes in all':<16}{totals[0]:<20.0f}{totals[1]:<20.0f}")


if __name__ == "__main__":
    main()
