"""Runs the demo's commands, prints them as a user types them, and collects the results of checks."""

import os
import re
import subprocess

CONTINUED = " \\\n      "


class Failed(Exception):
    """A command failed, or its output lacks a value. The text is for the user."""


class Shell:
    """A shell in `folder`, with the folders `tools` first in PATH."""

    def __init__(self, folder, tools):
        self.folder = folder
        self.environment = dict(os.environ, PATH=":".join(list(tools) + [os.environ.get("PATH", "/usr/bin:/bin")]))
        self.right = self.wrong = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *parts, show=""):
        """Runs one command, whose parts are printed on a line each, and returns its standard output.

        Prints the lines of the output that match `show`. Raises Failed if the exit code is not 0.
        """
        command = CONTINUED.join(parts)
        print("  $ " + command, flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode != 0:
            raise Failed("expected exit code 0, found %d\n%s" % (done.returncode, done.stderr))
        for line in done.stdout.rstrip().splitlines():
            if re.search(show, line):
                print(("    " + line).rstrip())
        return done.stdout

    def check(self, is_right, answer):
        """Prints and counts a result. `answer` is a sentence that holds the values found and expected."""
        print("  %s: %s" % ("right" if is_right else "WRONG", answer), flush=True)
        if is_right:
            self.right += 1
        else:
            self.wrong += 1


def found(pattern, text):
    """The first group of the first match. Raises Failed if there is none."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise Failed("expected output that matches '%s', found:\n%s" % (pattern, text))
    return match.group(1)


def seconds(text):
    """A time in seconds, from text like "0.2752 s" or "275.165 ms"."""
    number, unit = text.split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]
