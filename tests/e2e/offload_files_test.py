"""Optimizer states in files: the same bits as on the host, also after kills, in the memory that the table says; errors are named."""

import contextlib
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
        return "offload: {optimizer: nvme, path: %s%s}\n" % (self.path("states"), ", buffers: %s" % buffers if buffers else "")

    def compile(self, name, offload, width=32, layers=2, mesh="mesh: {d: 2}\nshard: [{B: d}]\n", options=("--train", "adamw")):
        os.makedirs(self.path("model"), exist_ok=True)
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(config(width, layers), file)
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write(mesh + "precision: bf16\n" + offload)
        return subprocess.run([PARTITA, "compile", self.path("model"), "--dim", "batch=4,seq=8", "--plan", self.path("plan.yaml"),
                               "-o", self.path(name), "--json", *options], capture_output=True, text=True, timeout=300)

    def table(self, *arguments, **options):
        compiled = self.compile(*arguments, **options)
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
                mesh = "mesh: {d: 2}\nshard: [{B: d}]\nzero: %d\n" % zero
                host = self.table("host", "offload: {optimizer: host}\n", mesh=mesh)
                report = self.train("host", STEPS, "--checkpoint-dir", self.path("host%d.d" % zero))
                expected = self.tensors(self.path("host%d.d" % zero))
                for buffers in (None, "160 KB"):  # one window, or many
                    found = self.table("files", self.files(buffers), mesh=mesh)
                    self.assertGreaterEqual(found["files"], host["host"])
                    self.assertLess(found["files"], host["host"] + 4096 * 150)
                    self.assertEqual({**found, "host": 0, "files": 0}, {**host, "host": 0})
                    if buffers:
                        self.assertLessEqual(found["host"], 160000)
                    name = "files%d%s.d" % (zero, bool(buffers))
                    run = self.train("files", STEPS, "--checkpoint-dir", self.path(name))
                    self.assertEqual(run["memory"]["host"], found["host"])
                    self.assertEqual(run["memory"]["files"], found["files"])
                    self.assertEqual(run["losses"], report["losses"])
                    self.assertEqual(self.tensors(self.path(name)), expected)

    def test_killed_and_resumed(self):
        self.table("host", "offload: optimizer\n")
        self.train("host", STEPS, "--checkpoint-dir", self.path("host.d"))
        self.table("files", self.files("160 KB"))
        checkpoints = ("--checkpoint-dir", self.path("files.d"), "--checkpoint-every", "5", "--resume", "--log", self.path("log.jsonl"))
        killed = 0
        for after in (3, 8, 21, 37):
            with subprocess.Popen(self.command("files", STEPS, *checkpoints), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                while process.poll() is None and self.lines() < after:
                    time.sleep(0.001)
                process.send_signal(signal.SIGKILL)
                process.communicate()
            if process.returncode == -signal.SIGKILL:  # else the run ended by itself
                killed += 1
                # The files that a killed process leaves are used again.
                self.assertEqual(len(os.listdir(self.path("states"))), 2)
        self.assertGreater(killed, 0)
        self.train("files", STEPS, *checkpoints)
        self.assertEqual(self.tensors(self.path("files.d")), self.tensors(self.path("host.d")))

    def lines(self):
        try:
            with open(self.path("log.jsonl"), encoding="utf-8") as file:
                return file.read().count("\n")
        except FileNotFoundError:
            return 0

    def test_memory_of_the_process(self):
        peaks, tables = {}, {}
        for name, offload in (("host", "offload: optimizer\n"), ("files", self.files())):
            tables[name] = self.table(name, offload, width=256, layers=12, mesh="mesh: {d: 1}\nshard: [{B: d}]\n")
            for kind, more in (("", ()), (" saved", ("--checkpoint-dir", self.path(name + ".d")))):
                peaks[name + kind] = self.train(name, 3, "--threads", "1", *more)["memory"]["peak_process"]
        saved = tables["host"]["host"] - tables["files"]["host"]
        print("states %d, buffers %d; peaks %s" % (tables["host"]["host"], tables["files"]["host"], peaks))
        self.assertGreater(saved, 50e6)
        self.assertGreater(peaks["host"] - peaks["files"], 0.9 * saved)
        # A checkpoint's snapshot of the states is in a file, too: on the host it takes their memory twice.
        self.assertGreater(peaks["host saved"] - peaks["files saved"], 1.9 * saved)
        self.assertEqual(self.tensors(self.path("host.d"), 3), self.tensors(self.path("files.d"), 3))

    def test_any_program_with_states(self):
        """--offload-dir moves the states of a program that was compiled without it."""
        self.table("m", "offload: none\n")
        memory = self.train("m", STEPS, "--checkpoint-dir", self.path("m.d"))["memory"]
        moved = self.train("m", STEPS, "--checkpoint-dir", self.path("f.d"), "--offload-dir", self.path("states"),
                           "--offload-buffers", "160000")["memory"]
        self.assertEqual(self.tensors(self.path("m.d")), self.tensors(self.path("f.d")))
        self.assertEqual((memory["files"], memory["host"]), (0, 0))
        self.assertGreater(moved["files"], 0)
        self.assertLessEqual(moved["host"], 160000)

    def test_errors(self):
        def refused(*more, code=1):
            run = subprocess.run(self.command("m", 5, *more), capture_output=True, text=True, timeout=300)
            self.assertEqual(run.returncode, code, run.stderr)
            return run.stderr

        self.table("m", self.files())
        missing = self.path("missing")
        self.assertIn(missing + ": expected a folder for optimizer states, which must exist: No such file or directory",
                      refused("--offload-dir", missing))
        self.assertIn("/proc/states-", refused("--offload-dir", "/proc"))
        self.assertIn("expected at least ", refused("--offload-buffers", "1000"))
        limited = subprocess.run(["bash", "-c", 'ulimit -f 300; "$@"', "bash", *self.command("m", 5)], capture_output=True, text=True,
                                 timeout=300)
        self.assertEqual(limited.returncode, 1)
        self.assertIn(" of optimizer states: File too large", limited.stderr)
        self.assertEqual(os.listdir(self.path("states")), [])
        self.assertIn("numbers can be traced if optimizer states are in memory", refused("--debug-nan"))
        self.table("plain", "offload: none\n")
        plain = subprocess.run(self.command("plain", 5, "--offload-buffers", "160000"), capture_output=True, text=True, timeout=300)
        self.assertEqual(plain.returncode, 1, plain.stderr)
        self.assertIn("--offload-buffers: expected --offload-dir, or a model compiled with offload: {optimizer: nvme}", plain.stderr)
        small = self.compile("m", self.files("1 KB"))
        self.assertEqual(small.returncode, 1, small.stderr)
        self.assertRegex(small.stderr, "plan.yaml:4:10: offload: buffers: expected at least [0-9]+ bytes .*, found 1000; raise it")
        stateless = self.compile("m", self.files(), options=())
        self.assertIn("offload: keeps optimizer states in files, but this program has none", stateless.stderr)
        gpu = self.compile("m", self.files(), options=("--train", "adamw", "--target", "cuda:sm_90"))
        self.assertIn("offload: expected optimizer: host with --target cuda:sm_90", gpu.stderr)

    def test_a_damaged_file_is_named(self):
        self.table("m", self.files("160 KB"))
        with subprocess.Popen(self.command("m", 1000000, "--log", self.path("log.jsonl")), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and self.lines() < 3:
                time.sleep(0.001)
            file = self.path("states/" + sorted(os.listdir(self.path("states")))[0])
            # A write may restore the length before it is checked.
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                with contextlib.suppress(FileNotFoundError):
                    os.truncate(file, 4096)
                time.sleep(0.003)
            said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("another process changed its length", said)
        self.assertIn(file, said)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
