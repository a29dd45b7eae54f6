"""Batches brought ahead on a thread, alone and in training, with numpy alone."""

import gc
import os
import subprocess
import sys
import threading
import time
import unittest

from checkout import DATA, golden, numpy, targets

import partita

GPT2 = os.path.join(DATA, "gpt2", "model_train.onnx")
# No test waits so long unless it fails.
LIMIT = 60.0


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "partita ahead"]


class Loader:
    """Counts to `count` each time it is iterated. Notes what was fetched, and may sleep or fail before a number."""

    def __init__(self, count, seconds=0.0, fail_at=None):
        self.count, self.seconds, self.fail_at = count, seconds, fail_at
        self.fetched, self.begun = [], threading.Condition()

    def __iter__(self):
        for number in range(self.count):
            with self.begun:
                self.fetched.append(number)
                self.begun.notify()
            time.sleep(self.seconds)
            if number == self.fail_at:
                raise OSError("no file %d" % number)
            yield number

    def wait_for(self, count):
        """Waits until the fetch of that many batches has begun."""
        with self.begun:
            return self.begun.wait_for(lambda: len(self.fetched) >= count, LIMIT)


class AheadTest(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(threads(), [])

    def test_all_batches_in_order(self):
        self.assertEqual(list(partita.ahead(range(100))), list(range(100)))
        self.assertEqual(list(partita.ahead(range(5), depth=3)), list(range(5)))
        self.assertEqual(list(partita.ahead([])), [])
        batches = partita.ahead([1])
        self.assertEqual((list(batches), list(batches)), ([1], []))

    def test_the_next_batch_is_fetched_while_the_caller_works(self):
        for depth in (1, 2):
            loader = Loader(10)
            with partita.ahead(loader, depth) as batches:
                for number in batches:
                    self.assertTrue(loader.wait_for(min(number + 1 + depth, 10)), "batch %d was not brought ahead" % (number + depth))
                    self.assertLessEqual(len(loader.fetched), number + 1 + depth)

    def test_no_more_than_depth_batches_wait(self):
        loader = Loader(10)
        with partita.ahead(loader, depth=2) as batches:
            self.assertEqual(next(batches), 0)
            self.assertTrue(loader.wait_for(3))
            time.sleep(0.1)
            self.assertEqual(loader.fetched, [0, 1, 2])

    def test_an_error_arrives_after_the_batches_before_it(self):
        found = []
        with self.assertRaisesRegex(OSError, "^no file 3$"):
            for number in partita.ahead(Loader(10, fail_at=3)):
                found.append(number)
        self.assertEqual(found, [0, 1, 2])
        with self.assertRaisesRegex(TypeError, "not iterable"):
            partita.ahead(3)
        with self.assertRaisesRegex(partita.InvalidError, "at least 1 batch, found 0"):
            partita.ahead([], depth=0)

    def test_leaving_early_ends_the_thread(self):
        loader = Loader(1000)
        for number in partita.ahead(loader):
            if number == 2:
                break
        self.assertEqual(threads(), [])
        self.assertLess(len(loader.fetched), 10)
        with self.assertRaises(KeyboardInterrupt):
            for number in partita.ahead(loader):
                raise KeyboardInterrupt
        self.assertEqual(threads(), [])
        with partita.ahead(loader) as batches:
            next(batches)
        self.assertEqual((threads(), list(batches)), ([], []))
        batches = partita.ahead(loader)  # never used
        self.assertEqual(len(threads()), 1)
        del batches
        gc.collect()

    def test_closing_wakes_a_thread_that_waits_for_a_batch(self):
        def slowly():
            yield 0
            time.sleep(0.2)
            yield 1

        batches, found = partita.ahead(slowly()), []
        reader = threading.Thread(target=lambda: found.extend(batches))
        reader.start()
        time.sleep(0.1)
        batches.close()
        reader.join(LIMIT)
        self.assertFalse(reader.is_alive())

    def test_a_process_can_end_while_batches_are_fetched(self):
        code = "import checkout, itertools, partita; batches = partita.ahead(itertools.count()); print(next(batches))"
        path = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, timeout=LIMIT, check=True,
                              env=dict(os.environ, PYTHONPATH=path))
        self.assertEqual(done.stdout, b"0\n")


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = golden("gpt2")
        cls.batch = cls.golden["in.input_ids"], targets("gpt2")
        cls.step = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, train=partita.adamw(1e-3))

    def tearDown(self):
        self.assertEqual(threads(), [])

    def expect_golden(self, losses):
        for loss, expected in zip(losses, self.golden["losses"]):
            self.assertAlmostEqual(loss, expected, delta=1e-4 * abs(expected))

    def test_five_batches_are_five_steps_of_pytorch(self):
        seen = []
        state, losses = self.step.train(self.step.init(), [self.batch] * 5, on_step=lambda state, loss: seen.append((state.step, loss)))
        self.assertEqual(len(losses), 5)
        self.expect_golden(losses)
        self.assertEqual(seen, list(enumerate(losses, 1)))
        self.assertEqual((state.step, state.losses), (5, losses))

    def test_batches_by_name(self):
        names = [info.name for info in self.step.inputs]
        self.expect_golden(self.step.train(self.step.init(), [dict(zip(names, self.batch))] * 2)[1])

    def test_steps(self):
        state, losses = self.step.train(self.step.init(), [self.batch, list(self.batch)], steps=5)  # begins again
        self.assertEqual(len(losses), 5)
        self.expect_golden(losses)
        endless = iter(lambda: self.batch, None)
        state, losses = self.step.train(state, endless, steps=3)
        self.assertEqual((len(losses), state.step), (3, 8))
        taken = iter([self.batch] * 5)
        self.step.train(state, taken, steps=2)
        self.assertEqual(len(list(taken)), 3)  # none was fetched that is not trained on
        with self.assertRaisesRegex(partita.InvalidError, "expected 5 batches, found 3; .* can begin again"):
            self.step.train(state, iter([self.batch] * 3), steps=5)
        self.assertEqual(state.step, 13)

    def test_errors(self):
        def failing():
            yield self.batch
            raise OSError("disk")

        state = self.step.init()
        with self.assertRaisesRegex(OSError, "disk"):
            self.step.train(state, failing())
        self.assertEqual(state.step, 1)
        with self.assertRaisesRegex(partita.InvalidError, "expected 2 inputs .*, found 3"):
            self.step.train(state, [self.batch + self.batch[:1]])
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            self.step.train(state, [self.batch] * 9, on_step=lambda state, loss: 1 // 0)

    def test_a_slow_loader_works_while_steps_run(self):
        """Each fetch sleeps for the time of a step, so the two take turns or overlap. The times are printed; the overlap is judged."""
        ids, labels = (numpy.tile(each, (64, 1)) for each in self.batch)
        step = partita.compile(GPT2, dims={"batch": len(ids), "seq": ids.shape[1]}, train=partita.adamw(1e-3))
        state = step.init()
        begin = time.perf_counter()
        state, _ = step.train(state, [(ids, labels)] * 3)
        seconds = (time.perf_counter() - begin) / 3
        fetches = []

        def slowly():
            for _ in range(10):
                begin = time.perf_counter()
                time.sleep(seconds)
                fetches.append((begin, time.perf_counter()))
                yield ids, labels

        steps, call = [], step.program.session.train_step

        def timed(*values, **feeds):
            begin = time.perf_counter()
            loss = call(*values, **feeds)
            steps.append((begin, time.perf_counter()))
            return loss

        step.program.session.train_step = timed
        begin = time.perf_counter()
        step.train(state, slowly())
        total = time.perf_counter() - begin
        work = sum(end - begin for begin, end in fetches + steps)
        overlap = sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in fetches for b in steps)
        print("10 steps of %.1f ms: fetching and steps take %.1f ms one after the other, %.1f ms with batches brought ahead" % (
            1e3 * seconds, 1e3 * work, 1e3 * total))
        self.assertGreater(overlap, 0.2 * sum(end - begin for begin, end in steps))


if __name__ == "__main__":
    unittest.main(verbosity=1)
