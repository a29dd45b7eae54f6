"""Numbers with units, and tables, for people."""


def size(count):
    """1536 becomes "1.5 kB"."""
    count = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return ("%d %s" if unit == "B" else "%.1f %s") % (count, unit)
        count /= 1000
    return ""


def some(names, most=5):
    """The first names of a list, and how many more there are."""
    names = list(names)
    more = " and %d more" % (len(names) - most) if len(names) > most else ""
    return ", ".join(names[:most]) + more or "nothing"


def time(seconds):
    """0.0023 becomes "2.300 ms"."""
    if seconds >= 1:
        return "%.3f s" % seconds
    return "%.3f ms" % (seconds * 1e3) if seconds >= 1e-3 else "%.1f us" % (seconds * 1e6)


def count(number):
    """124439808 becomes "124.4 M"."""
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return "%.1f %s" % (number / factor, unit)
    return str(number)


def table(rows, widest=80):
    """Columns of texts, left aligned; longer cells than `widest` are cut, except in the last column."""
    if not rows:
        return ""
    cut = [[cell if i == len(row) - 1 or len(cell) <= widest else cell[:widest - 3] + "..." for i, cell in enumerate(row)] for row in rows]
    widths = [max(len(row[i]) for row in cut if i < len(row)) for i in range(max(map(len, cut)))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cut)


def curve(values, title, width=480, height=200):
    """A line through `values` as SVG. Values that are no finite numbers are left out."""
    points = [(i, value) for i, value in enumerate(values) if value - value == 0]
    low, high = (min(value for _, value in points), max(value for _, value in points)) if points else (0, 0)
    across, up = (width - 80) / max(1, len(values) - 1), (height - 50) / ((high - low) or 1)
    path = " ".join("%.1f,%.1f" % (60 + i * across, height - 20 - (value - low) * up) for i, value in points)
    labels = "".join('<text x="54" y="%d" text-anchor="end">%.4g</text>' % (y, value) for y, value in ((34, high), (height - 16, low)))
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'
            '<text x="60" y="16">%s</text>%s<polyline fill="none" stroke="#1f77b4" stroke-width="1.5" points="%s"/></svg>' % (
                width, height, title, labels, path))
