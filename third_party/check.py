#!/usr/bin/python3
"""Checks the source tree without building it.

usage: ./bazelw run //third_party:check [-- --fast]

| check | all | --fast |
|---|---|---|
| format | clang-format of every C++ file | of the files that differ from HEAD |
| tidy | clang-tidy of the sources that differ from origin/main (tidy.sh) | not run |
| prose | the lines that differ from origin/main (prose.py) | from HEAD |
| licences | packages and test data have a row with their licence (licences.py) | the same |
| pages | links, paths and options that pages name exist (tests/layering/pages_test.py) | the same |

Prints a line per check, and what a failed one found. Exits with 1 if any failed, and with 2 if the command line is wrong. A
commit needs --fast, which third_party/pre-commit runs. tidy reads generated headers from bazel-bin: build //compiler/tools/...
and //runtime/tools/... before.
"""

import os
import subprocess
import sys
import time

# Bazel says where the source tree is; without it, this file is in third_party.
ROOT = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
CODE = ("compiler/", "dialects/", "frontends/", "runtime/", "tests/")


def run(*command):
    """Runs a command in the root. Returns (whether it succeeded, its output)."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout


def lines(*command):
    succeeded, output = run(*command)
    return output.splitlines() if succeeded else []


def changed(base):
    """Files that differ from revision `base`, and new files that git does not ignore."""
    return sorted(set(lines("git", "diff", "--name-only", "--diff-filter=d", base) +
                      lines("git", "ls-files", "--others", "--exclude-standard")))


def check_format(files):
    files = [file for file in files if file.endswith((".cc", ".h")) and file.startswith(CODE)]
    if not files:
        return True, ""
    fine, output = run("clang-format-22", "--dry-run", "-Werror", *files)
    wrong = sorted({line.split(":")[0] for line in output.splitlines() if ": error:" in line})
    return fine, "run clang-format-22 -i %s" % " ".join(wrong) if wrong else output


def check_prose(base, files):
    # Without an argument it would read every file.
    return run("third_party/prose.py", "--since", base, *files) if files else (True, "")


def check_tidy():
    fine, output = run("third_party/tidy.sh")
    if "file not found" in output:
        output = "generated headers may be missing: ./bazelw build //compiler/tools/... //runtime/tools/... and try again\n" + output
    return fine, output


def main(arguments):
    if arguments not in ([], ["--fast"]):
        print("check: expected no argument, or --fast, found '%s'" % " ".join(arguments))
        return 2
    fast = bool(arguments)
    base = "HEAD" if fast else (lines("git", "merge-base", "HEAD", "origin/main") or ["HEAD"])[0]
    files = changed(base)
    checks = [("format", lambda: check_format(files if fast else lines("git", "ls-files"))),
              ("prose", lambda: check_prose(base, files)),
              ("licences", lambda: run("third_party/licences.py")),
              ("pages", lambda: run(sys.executable, "-S", "tests/layering/pages_test.py"))]
    if not fast:
        checks.append(("tidy", check_tidy))
    failed = 0
    for name, check in checks:
        started = time.monotonic()
        fine, output = check()
        print("%-9s %-7s %5.1f s" % (name, "ok" if fine else "FAILED", time.monotonic() - started), flush=True)
        if not fine:
            failed += 1
            print("    " + output.strip().replace("\n", "\n    "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
