"""Optimizer states in files: the same bits as in memory, also after kills, in buffers of a known size; errors are named."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
STEPS = 50


def config(width, layers):
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 8, "n_embd": width,
            "n_layer": layers, "n_head": 4}


class OffloadFilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(self.path("states"))
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(600) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def files(self, buffers=None):
        return ("--offload-dir", self.path("states")) + (("--offload-buffers", str(buffers)) if buffers else ())

    def compile(self, name, width=32, layers=2, mesh="mesh: {d: 2}\nshard: [{B: d}]\n", options=("--train", "adamw")):
        os.makedirs(self.path("model"), exist_ok=True)
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(config(width, layers), file)
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write(mesh + "precision: bf16\noffload: optimizer\n")
        return subprocess.run([PARTITA, "compile", self.path("model"), "--dim", "batch=4,seq=8", "--plan", self.path("plan.yaml"),
                               "-o", self.path(name), "--json", *options], capture_output=True, text=True, timeout=300)

    def table(self, name, **options):
        compiled = self.compile(name, **options)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        return json.loads(compiled.stdout)["memory"]

    def command(self, name, steps, *more):
        return [PARTITA_RUN, "train", self.path(name), "--data", self.path("tokens.bin"), "--steps", str(steps), "--lr", "0.01",
                "--json", *more]

    def train(self, name, steps=STEPS, *more):
        run = subprocess.run(self.command(name, steps, *more), capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(os.listdir(self.path("states")), [])  # the files are removed
        return json.loads(run.stdout)

    def tensors(self, folder, step=STEPS):
        folder, tensors = os.path.join(folder, "step-%08d" % step), {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                with open(os.path.join(folder, file), "rb") as data:
                    tensors[file] = data.read()
        self.assertTrue(tensors)
        return tensors

    def test_same_bits_as_on_the_host(self):
        for zero in (0, 1):
            with self.subTest(zero=zero):
                states = self.table("m", mesh="mesh: {d: 2}\nshard: [{B: d}]\nzero: %d\n" % zero)["host"]
                host = self.train("m", STEPS, "--checkpoint-dir", self.path("host%d" % zero))
                self.assertEqual((host["memory"]["host"], host["memory"]["files"]), (states, 0))
                for buffers in (None, 160000):  # one window, or many
                    folder = self.path("files%d%s" % (zero, bool(buffers)))
                    run = self.train("m", STEPS, "--checkpoint-dir", folder, *self.files(buffers))
                    # Each state is rounded to pages.
                    self.assertGreaterEqual(run["memory"]["files"], states)
                    self.assertLess(run["memory"]["files"], states + 4096 * 150)
                    self.assertLessEqual(run["memory"]["host"], buffers or run["memory"]["files"])
                    self.assertEqual(run["losses"], host["losses"])
                    self.assertEqual(self.tensors(folder), self.tensors(self.path("host%d" % zero)))

    def test_killed_and_resumed(self):
        self.table("m")
        self.train("m", STEPS, "--checkpoint-dir", self.path("host"))
        options = ("--checkpoint-dir", self.path("files"), "--checkpoint-every", "5", "--resume", "--log", self.path("log.jsonl"),
                   *self.files(160000))
        killed = 0
        for after in (3, 8, 21, 37):
            with subprocess.Popen(self.command("m", STEPS, *options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                while process.poll() is None and self.lines() < after:
                    time.sleep(0.001)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                killed += process.returncode == -signal.SIGKILL
        self.assertGreater(killed, 0)
        # The files that the last killed process left are used again, and removed at the end.
        self.assertEqual(len(os.listdir(self.path("states"))), 2)
        self.train("m", STEPS, *options)
        self.assertEqual(self.tensors(self.path("files")), self.tensors(self.path("host")))

    def lines(self):
        try:
            with open(self.path("log.jsonl"), encoding="utf-8") as file:
                return file.read().count("\n")
        except FileNotFoundError:
            return 0

    def test_memory_of_the_process(self):
        states = self.table("m", width=256, layers=8, mesh="mesh: {d: 1}\nshard: [{B: d}]\n")["host"]
        peaks = {}
        for name, files in (("host", ()), ("files", self.files())):
            for kind, more in (("", ()), (" saved", ("--checkpoint-dir", self.path(name)))):
                memory = self.train("m", 3, "--threads", "1", *more, *files)["memory"]
                peaks[name + kind] = memory["peak_process"]
        saved = states - memory["host"]
        print("states %d, buffers %d; peaks %s" % (states, memory["host"], peaks))
        self.assertGreater(saved, 50e6)
        self.assertGreater(peaks["host"] - peaks["files"], 0.9 * saved)
        # A checkpoint's snapshot of the states is in a file, too: on the host it takes their memory twice.
        self.assertGreater(peaks["host saved"] - peaks["files saved"], 1.9 * saved)
        self.assertEqual(self.tensors(self.path("host"), 3), self.tensors(self.path("files"), 3))

    def test_errors(self):
        def refused(*more):
            run = subprocess.run(self.command("m", 5, *more), capture_output=True, text=True, timeout=300)
            self.assertEqual(run.returncode, 1, run.stderr)
            return run.stderr

        self.table("m")
        missing = self.path("missing")
        self.assertIn(missing + ": expected a folder for optimizer states, which must exist: No such file or directory",
                      refused("--offload-dir", missing))
        self.assertIn("/proc/states-", refused("--offload-dir", "/proc"))
        self.assertIn("expected at least ", refused(*self.files(1000)))
        limited = subprocess.run(["bash", "-c", 'ulimit -f 300; "$@"', "bash", *self.command("m", 5, *self.files())], capture_output=True,
                                 text=True, timeout=300)
        self.assertEqual(limited.returncode, 1)
        self.assertIn(" of optimizer states: File too large", limited.stderr)
        self.assertEqual(os.listdir(self.path("states")), [])
        self.assertIn("numbers can be traced if optimizer states are in memory", refused("--debug-nan", *self.files()))

    def test_a_damaged_file_is_named(self):
        self.table("m")
        with subprocess.Popen(self.command("m", 1000000, "--log", self.path("log.jsonl"), *self.files(160000)), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and self.lines() < 3:
                time.sleep(0.001)
            file = self.path("states/" + sorted(os.listdir(self.path("states")))[0])
            os.truncate(file, 4096)
            said = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("another process changed its length", said)
        self.assertIn(file, said)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
