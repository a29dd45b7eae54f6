"""Checks that the things which pages and comments name exist: files, headings, targets, options, other pages.

A function takes the root of a tree and yields violations as "file:line: what was expected, found".
"""

import glob
import os
import re

FOLDERS = ("compiler", "dialects", "frontends", "runtime", "tests", "third_party")
SOURCES = (".bzl", ".c", ".cc", ".cu", ".fbs", ".h", ".mlir", ".py", ".sh", ".td", "BUILD")

# Options of other programs that pages name.
FOREIGN = {
    "config": "Bazel", "disk_cache": "Bazel", "jobs": "Bazel", "test_filter": "Bazel",
    "mlir-print-ir-after-all": "MLIR", "mlir-timing": "MLIR",
}


def files(root, endings):
    for where, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(("bazel-", ".")) and f != "__pycache__")
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def prose_lines(page):
    """The lines of a page outside of fenced code: (number, line)."""
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchors(page):
    """The anchors that GitHub makes of a page's headings."""
    found = set()
    for _, line in prose_lines(page):
        if line.startswith("#"):
            heading = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            while heading in found:
                heading += "-1"
            found.add(heading)
    return found


def broken_links(root):
    for path in files(root, ".md"):
        for number, line in prose_lines(read(root, path)):
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"\w+:", target):
                    continue  # another site: the tests have no network
                page, _, anchor = target.partition("#")
                other = os.path.normpath(os.path.join(os.path.dirname(path), page)) if page else path
                if not os.path.exists(os.path.join(root, other)):
                    yield "%s:%d: expected a file, found a link to %s" % (path, number, target)
                elif anchor and anchor not in anchors(read(root, other)):
                    yield "%s:%d: expected a heading of %s, found a link to #%s" % (path, number, other, anchor)


def alternatives(path):
    """a.{h,cc} is a.h and a.cc."""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [each for part in match.group(1).split(",") for each in alternatives(path[:match.start()] + part + path[match.end():])]


def missing_paths(root):
    """Code such as `compiler/core/mesh.h`, also without the ending, with * or with {h,cc}, must name a file or folder."""
    for path in files(root, ".md"):
        for number, line in prose_lines(read(root, path)):
            for code in re.findall(r"`((?:%s)/[\w./{},*-]+)`" % "|".join(FOLDERS), line):
                for each in alternatives(code.rstrip("/")):
                    full = os.path.join(root, each)
                    if not (glob.glob(full) or glob.glob(full + ".*")):
                        yield "%s:%d: expected a file or folder, found %s" % (path, number, each)


def missing_targets(root, labels):
    """Labels such as //tests:long must be among `labels`, or name a package with targets."""
    packages = {label[2:].split(":")[0] for label in labels}
    for path in files(root, ".md"):
        for number, line in enumerate(read(root, path).splitlines(), 1):
            for package, target in re.findall(r"(?<![\w:/.])//((?:%s)\b[\w./-]*|)(:[\w./-]*\w)?" % "|".join(FOLDERS), line):
                below = package.endswith("...")
                package = re.sub(r"/?\.*$", "", package)
                if not package and not target:
                    continue  # a comment in an example
                if below:
                    exists = any((each + "/").startswith(package + "/") for each in packages)
                elif target and target != ":all":
                    exists = "//%s%s" % (package, target) in labels or os.path.isfile(os.path.join(root, package, target[1:]))
                else:
                    exists = package in packages
                if not exists:
                    yield "%s:%d: expected a target, found //%s%s" % (path, number, package, target)


def declared_options(root):
    """Options of our programs: quoted in C++ and Python, anywhere in a script, and those of passes and pipelines."""
    found = set(FOREIGN)
    for path in files(root, (".cc", ".h", ".py", ".td", ".sh", "bazelw")):
        if path.startswith("tests/layering/"):
            continue
        text = read(root, path)
        if path.endswith(".td"):
            found.update(re.findall(r'\bPass<"([\w-]+)"', text), re.findall(r'\bOption<"\w+", "([\w-]+)"', text))
        else:
            found.update(re.findall(r'--([a-zA-Z][\w-]*)' if path.endswith((".sh", "bazelw")) else r'"--([a-zA-Z][\w-]*)[",= ]', text))
            found.update(re.findall(r'PassPipelineRegistration<\w*>\s*\(\s*"([\w-]+)"', text))
    return found


def unknown_options(root):
    declared = declared_options(root)
    for path in files(root, ".md"):
        for number, line in enumerate(read(root, path).splitlines(), 1):
            for option in re.findall(r"(?<![\w-])--([a-zA-Z][\w-]*)", line):
                if option not in declared:
                    yield ("%s:%d: expected an option of this project, found --%s; correct it, or add it to FOREIGN in "
                           "tests/layering/pages.py" % (path, number, option))


def missing_pages(root):
    """Sources may name only pages of this tree: X.md, beside the source or from the root."""
    for path in files(root, SOURCES):
        if path.startswith(("tests/layering/", "tests/data/")) or path.endswith("_test.py"):
            continue  # Python tests write pages
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if path.endswith(".sh"):
                line = line.partition("#")[2]  # commands may write pages
            for page in re.findall(r"[\w./-]*\w\.md\b", line):
                beside = os.path.join(root, os.path.dirname(path), page)
                if not os.path.exists(beside) and not os.path.exists(os.path.join(root, page)):
                    yield "%s:%d: expected a page of this tree, found %s" % (path, number, page)


def missing_references(root, labels):
    """A folder with passes.td or ops.td must have a reference page that a test compares with it."""
    for definitions, page in (("passes.td", "PASSES.md"), ("ops.td", "OPS.md")):
        for path in files(root, definitions):
            folder, name = os.path.split(path)
            test = "//%s:%s_docs_test" % (folder, page[:-len(".md")].lower())
            if name == definitions and test not in labels:
                yield '%s: expected reference_page(page = "%s", ...) in the BUILD file of its folder, found no %s' % (path, page, test)
