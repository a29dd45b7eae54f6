"""Imports the models of zoo.py by .pt2 and by ONNX, compares them with PyTorch, and prints a table. README.md explains it.

Usage: run.py [--only TEXT...] [--door pt2 onnx] [--again] [--failed]. Needs `setup.sh --torch`, partita and partita-run. Rows go to a
JSON file as they are ready, and a later run skips them.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = pathlib.Path(os.environ.get("PARTITA_BENCH_CACHE", "~/.cache/partita-bench")).expanduser()
COLUMNS = ["exported", "imported", "equal", "trained", "B", "tensor", "H", "gradients"]  # the last of full-size models only


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="models whose names contain one of these")
    parser.add_argument("--full", action="store_true", help="the full-size models instead of the small ones")
    parser.add_argument("--door", nargs="+", default=["pt2", "onnx"], choices=["pt2", "onnx"])
    parser.add_argument("--again", action="store_true", help="repeat rows that are in the file")
    parser.add_argument("--failed", action="store_true", help="repeat rows with a column that failed")
    parser.add_argument("--seconds", type=int, default=600, help="limit of a row")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "bazel-bin",
                        help="where compiler/tools/partita and runtime/tools/partita-run are")
    parser.add_argument("--json", type=pathlib.Path, default=CACHE / "doors.json", metavar="FILE")
    parser.add_argument("--table", action="store_true", help="print the table of the file and run nothing")
    return parser.parse_args()


def check(name, door, options):
    """A row of one door, from a process of its own, which is ended after a while. A fork, because the libraries load slowly."""
    import check as checks

    receiver, sender = multiprocessing.Pipe(duplex=False)

    def work():
        os.setpgrp()
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            sender.send(checks.row(name, door, options.tools))
        except Exception as error:
            sender.send({"exported": f"{type(error).__name__}: {error}"[:700]})

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    sender.close()
    try:
        if receiver.poll(options.seconds):
            return receiver.recv()
        return {"exported": f"not done within {options.seconds} s"}
    except EOFError:
        process.join()
        return {"exported": f"its process ended with code {process.exitcode}"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def is_whole(row):
    return all(row.get(column) in ("yes", "-") for column in COLUMNS[:-1]) and row.get("gradients", "-") in ("yes", "-")


def print_table(rows, doors):
    print("| model | " + " | ".join(f"{door} {column}" for door in doors for column in COLUMNS) + " |")
    print("|---" * (1 + len(doors) * len(COLUMNS)) + "|")
    for name, of in rows.items():
        cells = ["" if value is None else value if value in ("yes", "-") else "no" for door in doors for value in (of.get(door, {}).get(c) for c in COLUMNS)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for door in doors:
        of = [row[door] for row in rows.values() if door in row]
        exported = sum(row.get("exported") == "yes" for row in of)
        print(f"\n{door}: {len(of)} models, {exported} exported by torch, {sum(map(is_whole, of))} whole; " +
              ", ".join(f"{column} {sum(row.get(column) == 'yes' for row in of)}" for column in COLUMNS[1:]))
    for name, of in rows.items():
        for door in doors:
            for column in COLUMNS:
                if of.get(door, {}).get(column) not in (None, "yes", "-"):
                    print(f"- {name}, {door}, {column}: {of[door][column]}")


def main():
    options = arguments()
    rows = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.table:
        return print_table(rows, options.door)
    sys.path.insert(0, str(HERE))
    import zoo

    options.json.parent.mkdir(parents=True, exist_ok=True)
    for name in zoo.MODELS:
        if (name in zoo.FULL) != options.full:
            continue
        if options.only and not any(text in name for text in options.only):
            continue
        for door in options.door:
            row = rows.get(name, {}).get(door)
            if row and not options.again and not (options.failed and not is_whole(row)):
                continue
            start = time.monotonic()
            row = check(name, door, options)
            rows.setdefault(name, {})[door] = row
            # The order of the table is that of zoo.py.
            rows = {key: rows[key] for key in zoo.MODELS if key in rows}
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
            print(f"{name} {door} {time.monotonic() - start:.0f} s:", {k: v[:150] for k, v in row.items()}, flush=True)
    print_table(rows, options.door)


if __name__ == "__main__":
    main()
