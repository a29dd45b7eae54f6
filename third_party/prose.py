#!/usr/bin/python3
"""Finds habits that make comments and pages hard to read.

usage: prose.py [--since REVISION] [FILE ...]

Without files it reads every source file and page that git tracks, except the test data. With --since it reports only lines that
are not in the file's version at REVISION. Prints file, line, habit and text of each place, and exits with 1 if there are any.

A comment is a sentence about a thing with a name. Three habits break that:
- the comment opens with a word that makes it a fragment;
- a word is vague where the field has an exact one;
- one line has six clauses or more.
"""

import os
import re
import subprocess
import sys

ENDINGS = (".bzl", ".cc", ".h", ".md", ".py", ".td")
OPENINGS = ("What", "Of", "Whether", "Which", "Whose", "That", "As", "So that", "How many", "Where", "To whom", "From which",
            "By which")
# A question may open with these words.
FRAGMENT = re.compile(r"(?:%s)\b(?![^.]*\?)" % "|".join(OPENINGS))
# Vague wording, and the advice that replaces it.
VAGUE = [(re.compile(r"\b(?:%s)\b" % wording), advice) for wording, advice in (
    ("patience", "say timeout"),
    ("anyhow", "say in any case, or leave it out"),
    ("as often as", "say once per"),
    ("in no order with", "say unordered with respect to"),
    ("has a say", "say affects"),
    ("at a guess", "say estimated"),
    ("strangers?", "say unknown peer, or newcomer"),
    ("knows? (?:of|how|which|what)", "say what the data structure contains"),
    ("what is (?:computed|kept|sent|left|done|read|written|asked)", "name the tensor, file or rank"),
    ("those (?:of|that|which)", "repeat the noun"),
    ("the one (?:of|that|which)", "repeat the noun"),
    ("stands? (?:in|on|for|where|beside)", "say is, or means"),
    ("so many", "give the number"),
    ("as far as", "say up to"),
    ("of a kind", "say which kind"),
    ("has to be", "say must be"),
)]
MOST_COMMAS, SHORT_LINE = 4, 90


def sentences(path, text):
    """Yields (line number, text, whether a sentence may start there) of each comment line, or each line of a page."""
    if path.endswith(".md"):
        in_code = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("```"):
                in_code = not in_code
            elif line.strip() and not in_code:
                yield number, re.sub(r"^[-#>*|.\d\s]+", "", line).strip(), True
        return
    mark = "#" if path.endswith((".py", ".bzl")) else "//"
    starts = True
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line.startswith(mark):
            starts = True
            continue
        yield number, line.lstrip("/#").strip(), starts
        starts = line.endswith((".", ":", mark))


def habits(sentence, starts):
    """Returns the habits found in one line."""
    found = []
    if starts and FRAGMENT.match(sentence):
        found.append("opens as a fragment: start with the subject, then a verb")
    for expression, advice in VAGUE:
        match = expression.search(sentence)
        if match:
            found.append("'%s': %s" % (match.group(), advice))
    if sentence.count(",") > MOST_COMMAS and len(sentence) > SHORT_LINE:
        found.append("six clauses or more: split the sentence")
    return found


def places(path, text, known=()):
    """Returns the places of one file as strings, leaving out lines whose text is in `known`."""
    lines = text.splitlines()
    return ["%s:%d: %s\n    %s" % (path, number, habit, sentence[:110])
            for number, sentence, starts in sentences(path, text) if lines[number - 1] not in known
            for habit in habits(sentence, starts)]


def git(*arguments):
    return subprocess.run(("git",) + arguments, capture_output=True, text=True, errors="replace").stdout


def main(arguments):
    since = None
    if arguments[:1] == ["--since"]:
        since, arguments = arguments[1], arguments[2:]
    paths = arguments or [path for path in git("ls-files").splitlines()
                          if path.endswith(ENDINGS) and not path.startswith("tests/data/")]
    found = []
    for path in paths:
        if not path.endswith(ENDINGS) or not os.path.exists(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        here = places(path, text)
        if here and since:
            here = places(path, text, set(git("show", "%s:./%s" % (since, path)).splitlines()))
        found += here
    print("\n".join(found + ["%d places in %d files" % (len(found), len(paths))]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
