"""Batches brought ahead: a thread fetches the next batch while the step before it runs."""

import collections.abc
import queue
import threading
import weakref

from partita_runtime import InvalidError


class Ahead:
    """Iterates over `batches`, any iterable such as a DataLoader, on a thread of its own.

        with partita.ahead(loader) as batches:
            for ids, targets in batches:
                state, loss = step(state, ids, targets)

    At most `depth` batches are fetched and not yet taken, so each must have memory of its own. An error of the iterable is raised here,
    in the place of the batch that it could not make. `close()`, the end of `with` and the end of this object's life stop the thread,
    once the batch that it is fetching is there.
    """

    def __init__(self, batches, depth=1):
        if depth < 1:
            raise InvalidError("expected a depth of at least 1 batch, found %r" % (depth,))
        self._ready = queue.SimpleQueue()
        self._room = threading.Semaphore(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=_fetch, args=(iter(batches), self._ready, self._room, self._stopped),
                                        name="partita ahead", daemon=True)  # so that an exit calls _stop instead of waiting
        self.close = weakref.finalize(self, _stop, self._thread, self._ready, self._room, self._stopped)
        self._thread.start()

    def __iter__(self):
        return self

    def __next__(self):
        if self._stopped.is_set():
            raise StopIteration
        batch, error = self._ready.get()
        if error is not None:
            self.close()
            try:
                raise error
            finally:
                del error  # whose traceback has this frame
        self._room.release()
        return batch

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _fetch(iterator, ready, room, stopped):
    """Runs on the thread, which must not hold the Ahead: its end stops the thread."""
    try:
        while True:
            room.acquire()  # pylint: disable=consider-using-with  # released by the batch's taker
            if stopped.is_set():
                return
            ready.put((next(iterator), None))
    except BaseException as error:  # pylint: disable=broad-exception-caught  # StopIteration as well; raised where the batch is taken
        ready.put((None, error))


def _stop(thread, ready, room, stopped):
    stopped.set()
    room.release()
    if thread is not threading.current_thread():
        thread.join()
    while not ready.empty():
        ready.get()
    ready.put((None, StopIteration()))  # for a thread that waits for a batch


def ahead(batches, depth=1) -> Ahead:
    """Fetches the next `depth` batches of an iterable on a thread while the caller works on one. See Ahead."""
    return Ahead(batches, depth)


def repeated(batches, steps):
    """Yields `steps` batches, beginning again when `batches` ends; all of them, once, for steps=None."""
    return _repeat(batches, iter(batches), steps)  # a DataLoader starts its processes here, on the caller's thread


def _repeat(batches, iterator, steps):
    taken = 0
    while steps is None or taken < steps:
        before = taken
        for batch in iterator:
            yield batch
            taken += 1
            if taken == steps:
                return
        if steps is None:
            return
        if taken == before:
            raise InvalidError("expected %d batches, found %d; give an iterable that can begin again, such as a list or a DataLoader" % (
                steps, taken))
        iterator = iter(batches)


def arguments(batch):
    """A batch as (values in order, {name: value}): a tuple or list, a mapping, or one tensor."""
    if isinstance(batch, collections.abc.Mapping):
        return (), dict(batch)
    return (tuple(batch), {}) if isinstance(batch, (tuple, list)) else ((batch,), {})
