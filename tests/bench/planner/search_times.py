"""Measures the cost of four plan searches: CPU seconds and memory of the whole command.

    python3 tests/bench/planner/search_times.py [--tools bazel-bin] [--check]

Times are CPU times, user plus system, so other load on the machine does not count. `--check` exits with 1 if a search takes more
than twice its time when LIMITS was written, or more than 1 GB.
"""

import argparse
import os
import pathlib
import subprocess
import sys

# Name: (arguments, upper bound in seconds: about twice the time on an AMD EPYC, November 2026).
LIMITS = {
    "GPT-2 XL on 64": (["gpt2-xl", "--dim", "batch=64,seq=1024", "--cluster", "64x a100-80-sxm", "--precision", "bf16"], 10),
    "175B on 1,536": (["--row", "layers=96,hidden=12288,heads=96,seq_len=2048,vocab=51200", "--batch", "1536",
                       "--cluster", "1536x a100-80-sxm"], 22),
    "1T on 3,072": (["--row", "layers=128,hidden=25600,heads=160,seq_len=2048,vocab=51200", "--batch", "3072",
                     "--cluster", "3072x a100-80-sxm"], 12),
    "CoAtNet-7 on 256": (["coatnet-7", "--dim", "batch=256", "--cluster", "256x a100-80-sxm", "--precision", "bf16"], 18),
}
MOST_MEGABYTES = 1000


def measure(partita, arguments):
    """CPU seconds, megabytes, output."""
    process = subprocess.Popen([partita, "plan", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # tells Popen that the process has been waited for
    if process.returncode != 0:
        sys.exit("partita plan %s: expected to succeed, found %d:\n%s" % (" ".join(arguments), process.returncode, text))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="bazel-bin", help="where compiler/tools/partita is")
    parser.add_argument("--check", action="store_true", help="end with 1 where a limit is passed")
    arguments = parser.parse_args()
    partita = str(pathlib.Path(arguments.tools) / "compiler/tools/partita")
    passed = True
    print("%-18s %9s %7s %6s  %s" % ("search", "seconds", "limit", "MB", "plan"))
    for name, (options, limit) in LIMITS.items():
        seconds, megabytes, text = measure(partita, options)
        step = text.splitlines()[0].split(" in ")[-1]
        chosen = next(line for line in text.splitlines() if line.startswith("chosen: "))
        print("%-18s %9.1f %7d %6.0f  %s: %s" % (name, seconds, limit, megabytes, step, chosen[len("chosen: "):]), flush=True)
        passed = passed and seconds <= limit and megabytes <= MOST_MEGABYTES
    if arguments.check and not passed:
        sys.exit("expected each search within its limit and %d MB, found more" % MOST_MEGABYTES)


if __name__ == "__main__":
    main()
