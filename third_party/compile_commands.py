#!/usr/bin/python3
"""Writes compile_commands.json, which clangd and other tools read, to the root of the source tree.

usage: ./bazelw run //third_party:compile_commands

Asks Bazel for the compile command of every source. Generated headers appear in bazel-bin only when they are built.
"""

import json
import os
import subprocess
import sys

ROOT = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def located(argument, externals):
    """Replaces the folder external/, which only Bazel's execution root has."""
    prefix = next((flag for flag in ("-isystem", "-iquote", "-I", "") if argument.startswith(flag + "external/")), None)
    return argument if prefix is None else prefix + externals + argument[len(prefix) + len("external"):]


def without_precompiled_header(arguments):
    """Drops -include-pch and its file, which exists only in a built tree and is of one version of clang."""
    return [argument for before, argument in zip([""] + arguments, arguments) if "-include-pch" not in (before, argument)]


def is_special(arguments):
    """True of commands for Bazel's own tools and for sanitizers, which write to folders of their own."""
    return any("/host/" in argument or "-ST-" in argument for argument in arguments[-1:])


def commands(actions, root, externals):
    """Yields an entry per source file. If several actions compile it, the ordinary one counts."""
    seen = set()
    for arguments in sorted((action["arguments"] for action in actions), key=is_special):
        arguments = [located(argument, externals) for argument in without_precompiled_header(arguments)]
        source = arguments[arguments.index("-c") + 1] if "-c" in arguments else None
        if source and source not in seen:
            seen.add(source)
            yield {"directory": root, "file": source, "arguments": arguments}


def bazel(*arguments):
    return subprocess.run(("./bazelw",) + arguments, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    actions = json.loads(bazel("aquery", "--output=jsonproto", "mnemonic(CppCompile, //...)"))["actions"]
    externals = os.path.join(bazel("info", "output_base").strip(), "external")
    found = sorted(commands(actions, ROOT, externals), key=lambda entry: entry["file"])
    path = os.path.join(ROOT, "compile_commands.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    print("wrote %s: %d sources" % (path, len(found)))


if __name__ == "__main__":
    sys.exit(main())
