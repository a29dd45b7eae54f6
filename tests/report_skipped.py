"""Lists skipped test cases with their reasons: report_skipped.py LOGS [NEWER_THAN]

LOGS is Bazel's folder of test logs. Results older than the file NEWER_THAN are ignored. Prints nothing if nothing was skipped. A
test with skipped cases passes, and Bazel hides the output of tests that pass.
"""

import collections
import os
import re
import sys
import xml.etree.ElementTree


def skipped_in(folder):
    """(reason, count) of one test or one of its shards."""
    try:
        root = xml.etree.ElementTree.parse(os.path.join(folder, "test.xml")).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return
    for case in root.iter("testcase"):
        for skipped in case.findall("skipped"):
            # gtest's messages begin with the place.
            yield (skipped.get("message") or skipped.text or "no reason given").strip().splitlines()[-1], 1
    # Bazel makes the file for other tests, with what they printed.
    for output in root.iter("system-out"):
        for pattern, reason in ((r"^OK \(.*skipped=(\d+)", "skipped by Python's unittest"), (r"^ *Unsupported *: *(\d+)", "unsupported, says lit")):
            for count in re.findall(pattern, output.text or "", re.MULTILINE):
                yield reason, int(count)


def main(logs, newer_than=None):
    since = os.path.getmtime(newer_than) if newer_than else 0
    counts, targets = collections.Counter(), collections.defaultdict(set)
    for folder, _, names in os.walk(logs, followlinks=True):
        if "test.xml" not in names or os.path.getmtime(os.path.join(folder, "test.xml")) < since:
            continue
        target = re.sub(r"/(shard_\d+_of_\d+|test_attempts).*", "", os.path.relpath(folder, logs))
        for reason, count in skipped_in(folder):
            counts[reason] += count
            targets[reason].add("//" + ":".join(target.rsplit("/", 1)))
    if counts:
        print("SKIPPED: %d cases, in whole or in part:" % sum(counts.values()))
    for reason, count in counts.most_common():
        print("  %d: %s (%s)" % (count, reason, ", ".join(sorted(targets[reason]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
