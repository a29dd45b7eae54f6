#!/usr/bin/python3
"""Checks that everything that others wrote has its licence on a page.

usage: licences.py [ROOT]

- Each Debian package in third_party/packages.txt matches a row of the table in third_party/README.md. A row may name several
  packages, and * stands for any characters.
- Each folder of tests/data has a row in the first table of its README, with its source.
- No cell "licence" is empty.

Prints each violation, and exits with 1 if there are any.
"""

import fnmatch
import os
import re
import sys


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def first_table(page):
    """Returns the rows of a page's first table as {column: cell}."""
    lines = re.search(r"(?:^\|.*\n)+", page + "\n", re.MULTILINE)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.group().splitlines()] if lines else [[]]
    return [dict(zip(cells[0], row)) for row in cells[2:]]


def names(cell):
    """Returns the names in a table's first cell: `a`, b (a remark) are a and b."""
    return [name.strip(" `/") for name in re.sub(r"\(.*?\)", "", cell).split(",")]


def undescribed(page, items, column, required):
    """Returns violations of a page whose first table must have a row for each of `items`, with no empty `required` cell."""
    rows = [(names(row.get(column, "")), row) for row in first_table(page)]
    found = []
    for item in items:
        row = next((row for patterns, row in rows if any(fnmatch.fnmatch(item, pattern) for pattern in patterns)), None)
        if row is None:
            found.append("expected a row for '%s' in the first table, with %s; found none" % (item, " and ".join(required)))
    for patterns, row in rows:
        found += ["expected a %s in the row of '%s', found an empty cell" % (cell, patterns[0])
                  for cell in required if not row.get(cell)]
    return found


def violations(root):
    packages = [line for line in read(root, "third_party/packages.txt").splitlines() if line and not line.startswith("#")]
    data = os.path.join(root, "tests/data")
    folders = sorted(name for name in os.listdir(data) if os.path.isdir(os.path.join(data, name)))
    checks = (("third_party/README.md", packages, "package", ("licence",)),
              ("tests/data/README.md", folders, "folder", ("source", "licence")))
    return ["%s: %s" % (page, violation) for page, items, column, required in checks
            for violation in undescribed(read(root, page), items, column, required)]


def main(arguments):
    found = violations(arguments[0] if arguments else ".")
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
