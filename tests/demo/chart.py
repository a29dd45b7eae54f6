"""Draws two curves with characters."""

FIRST, SECOND, BOTH = "o", "x", "*"


def draw(first, second, rows=10):
    """Lines of text: a column per step, the scale on the left; `*` where both curves have a point in one cell."""
    low, high = min(first + second), max(first + second)
    height = (high - low) / (rows - 1) or 1
    cells = [[" "] * len(first) for _ in range(rows)]
    for curve, mark in ((first, FIRST), (second, SECOND)):
        for column, value in enumerate(curve):
            row = cells[round((high - value) / height)]
            row[column] = mark if row[column] == " " else BOTH
    return ["%6.2f |%s" % (high - height * row, "".join(cells[row]).rstrip()) for row in range(rows)]
