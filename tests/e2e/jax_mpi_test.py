"""Programs that JAX divides over four devices, by annotations or by hand: processes of Open MPI give the bytes that threads give, in
outputs and in the losses of five training steps. `jax_test` compares the threads with JAX."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

COMPILER, RUNNER, ENVIRONMENT = sys.argv[1:4]
del sys.argv[1:4]
DATA = "tests/data/jax-tiny/"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def read(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def write_states(source, folder):
    """Writes the tensors of `source` whose names begin with "state." as a folder of weights; returns their number."""
    with open(source, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    states, content = {}, b""
    for name, entry in header.items():
        if not name.startswith("state."):
            continue
        begin, end = entry["data_offsets"]
        states[name[len("state."):]] = dict(entry, data_offsets=[len(content), len(content) + end - begin])
        content += data[begin:end]
    text = json.dumps(states).encode()
    os.mkdir(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + content)
    return len(states)


class JaxMpiTest(unittest.TestCase):
    def compare(self, program, steps, folder):
        artifact = os.path.join(folder, "program.partita")
        tensors = DATA + program + ".safetensors"
        weights = os.path.join(folder, "weights")
        given = ["--weights", weights] if write_states(tensors, weights) else []
        self.assertEqual(bool(given), len(steps) > 1)
        run([COMPILER, "compile", DATA + program + ".mlirbc", "-o", artifact, *given])
        for count in steps:
            command = [RUNNER, artifact, "--inputs", tensors, "--warmup", "0", "--repeat", str(count), "--output-dir"]
            threads, processes = (os.path.join(folder, "%s%d" % (name, count)) for name in ("threads", "processes"))
            run([*command, threads])
            run(["bash", "-c", 'source "$0"; "${mpi[@]}" -np 4 "$@"', ENVIRONMENT, *command, processes])
            self.assertTrue(read(threads))
            self.assertEqual(read(threads), read(processes), "step %d" % count)

    def test_processes_equal_threads(self):
        programs = sorted(name[:-len(".mlirbc")] for name in os.listdir(DATA)
                          if name.endswith(".mlirbc") and ("2x2" in name or name.startswith("manual_")))
        self.assertGreaterEqual(len(programs), 8)
        for program in programs:
            with self.subTest(program=program), tempfile.TemporaryDirectory() as folder:
                self.compare(program, range(1, 6) if "step" in program else (1,), folder)
        print("%d programs" % len(programs))


if __name__ == "__main__":
    unittest.main()
