"""Reads the tree's BUILD files: the sources, headers and dependencies of each target.

A BUILD file is executed as Python, with the rules it calls replaced by functions that record their arguments. Globs,
comprehensions, constants and the macros of .bzl files therefore need no interpreter here.
"""

import ast
import builtins
import os
import re


class Target:
    def __init__(self, package, rule, attributes):
        self.package, self.rule, self.attributes = package, rule, attributes
        self.label = "//%s:%s" % (package, attributes["name"])

    def labels(self, *attributes):
        """The labels in these attributes, absolute."""
        return [absolute(label, self.package) for name in attributes for label in self.attributes.get(name, [])]


def absolute(label, package):
    """The absolute label //a/b:c of ":c" or "c" in package a/b; //a/b:b for "//a/b"."""
    if not label.startswith(("//", "@")):
        return "//%s:%s" % (package, label.lstrip(":"))
    return label if ":" in label else "%s:%s" % (label, label.split("/")[-1])


def path_of(label):
    """The file in the tree that a label names if no target has its name."""
    return label[2:].replace(":", "/").lstrip("/")


def includes(path):
    """The files that a source includes as "...", with paths from the root."""
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^\s*#\s*include "([^"]+)"', file.read(), re.MULTILINE)


class Anything:
    """Replaces the functions that implementations of rules use: rule(...), attr.label(...)."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


class Native:
    """native.cc_test(...), the form in which .bzl files call rules."""

    def __init__(self, reader):
        self.reader = reader

    def __getattr__(self, name):
        return self.reader.glob if name == "glob" else self.reader.rule(name)


class BuildFiles:
    """All targets below the folder `root`, by label."""

    def __init__(self, root):
        self.root, self.targets, self.macros, self.package, self.reached = root, {}, {}, "", {}
        for where, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if not f.startswith(("bazel-", ".")))
            if "BUILD" in names:
                self.package = "" if where == root else os.path.relpath(where, root)
                self.run(os.path.join(where, "BUILD"))
        self.generated = {path_of(label) for target in self.targets.values() for label in target.labels("outs")}

    # --- Running ---

    def run(self, path):
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        scope = {name: self.rule(name) for name in called if not hasattr(builtins, name)}
        scope.update(glob=self.glob, native=Native(self), attr=Anything(), rule=Anything(), transition=Anything())
        scope["load"] = lambda label, *names: scope.update((name, self.macro(label, name)) for name in names)
        exec(compile(tree, path, "exec"), scope)  # pylint: disable=exec-used
        return scope

    def macro(self, label, name):
        if label not in self.macros:
            self.macros[label] = self.run(os.path.join(self.root, path_of(label)))
        return self.macros[label][name]

    def rule(self, name):
        def record(*_, **attributes):
            if "name" in attributes:
                target = Target(self.package, name, attributes)
                self.targets[target.label] = target
        return record

    def glob(self, patterns, exclude=()):
        top = os.path.join(self.root, self.package)
        found = []
        for where, folders, names in os.walk(top):
            folders[:] = [f for f in folders if not os.path.exists(os.path.join(where, f, "BUILD"))]
            found += [os.path.relpath(os.path.join(where, name), top) for name in names]
        return sorted(path for path in found if matches(path, patterns) and not matches(path, exclude))

    # --- Asking ---

    def files(self, label):
        """The files of a label: outputs, members of a group, or the source of that name."""
        target = self.targets.get(label)
        if target is None:
            return {path_of(label)}
        if target.rule == "filegroup":
            return {path for each in target.labels("srcs") for path in self.files(each)}
        return {path_of(each) for each in target.labels("outs")}

    def sources(self, target):
        return {path for label in target.labels("srcs", "hdrs", "textual_hdrs") for path in self.files(label)}

    def headers(self, label):
        """The headers that a target which depends on `label` may include."""
        target = self.targets.get(label)
        if target is None:
            return set()
        if target.rule == "alias":
            return self.headers(absolute(target.attributes["actual"], target.package))
        return {path for each in target.labels("hdrs", "textual_hdrs") for path in self.files(each)}

    def reaches(self, label, wanted):
        """Whether `label`, or a target that it depends on, is in the repository `wanted`, such as "@llvm//"."""
        key = (label, wanted)
        if key not in self.reached:
            target = self.targets.get(label)
            deps = target.labels("deps") if target else []
            self.reached[key] = label.startswith(wanted) or any(self.reaches(dep, wanted) for dep in deps)
        return self.reached[key]

    def is_ours(self, path):
        return path in self.generated or os.path.exists(os.path.join(self.root, path))

    def undeclared(self):
        """Includes of headers that belong neither to the target nor to a direct dependency: (target, source, header)."""
        for label, target in sorted(self.targets.items()):
            if not target.rule.startswith("cc_"):
                continue
            own = self.sources(target)
            visible = own.union(*(self.headers(dep) for dep in target.labels("deps")))
            for source in sorted(own):
                if source.endswith((".cc", ".h")) and source not in self.generated:
                    for header in includes(os.path.join(self.root, source)):
                        if header not in visible and self.is_ours(header):
                            yield label, source, header


def matches(path, patterns):
    def expression(pattern):
        return re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return any(re.fullmatch(expression(pattern), path) for pattern in patterns)
