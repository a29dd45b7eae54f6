"""Runs the compiler's commands in this process, through libpartita_compiler.so."""

import ctypes
import json
import os
import sys
import threading
import warnings

from partita_runtime import InternalError, InvalidError, PartitaError
from partita_runtime.native import open_library

ABI_VERSION = 1
SUCCESS, USER_ERROR, USAGE_ERROR, INTERNAL_ERROR, CANCELLED = 0, 1, 2, 70, 130
# Seconds that an interrupted command has to stop before control returns without it.
STOP_SECONDS = 10.0


class CompileError(PartitaError, ValueError):
    """A model, a plan or a file is wrong. The message is the command line's."""


class UsageError(PartitaError, TypeError):
    """An unknown option, or a value that cannot be read. The message is the command line's."""


class PartitaWarning(UserWarning):
    """A warning of the compiler."""


class _Answer(ctypes.Structure):
    _fields_ = [("exit_code", ctypes.c_int32), ("output", ctypes.c_char_p), ("messages", ctypes.c_char_p)]


_MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_library = None


def _find():
    """The library of the compiler, opened at the first call."""
    global _library  # pylint: disable=global-statement
    if _library is not None:
        return _library
    library = open_library("libpartita_compiler.so.1", "PARTITA_COMPILER_LIBRARY", __file__, "partita")
    library.partita_command.restype = ctypes.POINTER(_Answer)
    library.partita_command.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, _MESSAGE, ctypes.c_void_p]
    library.partita_free_answer.restype, library.partita_free_answer.argtypes = None, [ctypes.POINTER(_Answer)]
    library.partita_cancel.restype, library.partita_cancel.argtypes = None, []
    library.partita_compiler_abi_version.restype = ctypes.c_uint32
    if library.partita_compiler_abi_version() != ABI_VERSION:
        raise InvalidError("expected libpartita_compiler with ABI version %d, found version %d" % (
            ABI_VERSION, library.partita_compiler_abi_version()))
    _library = library
    return library


def show_progress(line):
    """Prints a line of progress, which commands write once they take more than two seconds. Replace it to see progress elsewhere."""
    print(line, file=sys.stderr, flush=True)


class Outcome:
    """How a command ended: its exit code, what it printed, and the lines of its messages."""

    def __init__(self, exit_code, output, messages):
        self.exit_code, self.output, self.messages = exit_code, output, messages

    @property
    def facts(self):
        """The JSON that it printed; None if it printed nothing."""
        return json.loads(self.output) if self.output.strip() else None


def _command(words, show):
    library, lines = _find(), []

    def take(line, _):
        lines.append(line.decode(errors="replace"))
        show(lines[-1])

    array = (ctypes.c_char_p * len(words))(*[os.fsencode(word) for word in words])
    answer = library.partita_command(array, len(words), _MESSAGE(take), None)
    if not answer:
        raise MemoryError("partita " + " ".join(words))
    try:
        return Outcome(answer.contents.exit_code, answer.contents.output.decode(errors="replace"), lines)
    finally:
        library.partita_free_answer(answer)


def _in_thread(words, show):
    """Runs the command beside the main thread, where Python handles KeyboardInterrupt."""
    result = {}

    def work():
        try:
            result["outcome"] = _command(words, show)
        except BaseException as error:  # pylint: disable=broad-except
            result["error"] = error

    thread = threading.Thread(target=work, name="partita " + words[0], daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except KeyboardInterrupt:
        _find().partita_cancel()
        thread.join(STOP_SECONDS)
        raise
    if "error" in result:
        raise result["error"]
    return result["outcome"]


def _start(words, show):
    on_main = threading.current_thread() is threading.main_thread()
    return (_in_thread if on_main else _command)(words, show)


def main(words):
    """Runs a command as the command line does. Returns its exit code."""
    try:
        outcome = _start(words, show_progress)
    except KeyboardInterrupt:
        return CANCELLED
    sys.stdout.write(outcome.output)
    return outcome.exit_code


def run(command, *words, accept=(SUCCESS,)):
    """Runs one command with --json. Returns its Outcome; raises an exception unless its exit code is in `accept`.

    Warnings become Python warnings. KeyboardInterrupt stops the command before its next phase.
    """
    failed = []

    def show(line):
        failed.extend([line] if line.startswith("error: ") else [])  # indented lines after it are details
        if not failed and line.startswith(("  ", "\r")):
            show_progress(line)

    outcome = _start([command, *[str(word) for word in words], "--json"], show)
    if outcome.exit_code not in accept or (outcome.exit_code != SUCCESS and outcome.facts is None):
        raise _error(outcome)
    for line in outcome.messages:
        if line.startswith("warning: "):
            warnings.warn(line[len("warning: "):], PartitaWarning, stacklevel=4)
    return outcome


def _error(outcome):
    begin = next((i for i, line in enumerate(outcome.messages) if line.startswith("error: ")), None)
    if begin is None:
        text = "\n".join(line for line in outcome.messages if not line.startswith("  "))
    else:
        text = "\n".join(outcome.messages[begin:])[len("error: "):]
    kinds = {USER_ERROR: CompileError, USAGE_ERROR: UsageError, CANCELLED: CompileError}
    return kinds.get(outcome.exit_code, InternalError)(text or "exit code %d" % outcome.exit_code)
