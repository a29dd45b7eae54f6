"""partita simulate runs compiled programs against the model of a cluster: table, JSON, trace, report, faults, refusals."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2_4l")


class SimulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.compile("pipe", "--mesh", "pipe=2,data=2,tensor=2", "--shard", "D=pipe,B=data;M=tensor,N=tensor,V=tensor", "--schedule", "1f1b",
                    "--microbatches", "4")
        cls.compile("async", "--mesh", "pipe=2", "--shard", "D=pipe", "--schedule", "async-2bw", "--microbatches", "4")
        cls.compile("whole")
        cls.compile("gpu", "--mesh", "pipe=2", "--shard", "D=pipe", "--schedule", "1f1b", "--microbatches", "4", "--target", "cuda:sm_80")

    @classmethod
    def compile(cls, name, *options):
        subprocess.run([PARTITA, "compile", GPT2, "--dim", "batch=8,seq=4", "--train", "adamw", "-o", cls.path(name + ".partita"), *options],
                       capture_output=True, check=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def simulate(self, model, *options, code=0):
        done = subprocess.run([PARTITA, "simulate", model + ".partita", *options], capture_output=True, text=True, check=False,
                              cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def facts(self, model, *options, cluster="8x a100-80-sxm"):
        return json.loads(self.simulate(model, "--cluster", cluster, "--json", *options))

    def test_the_parts_of_each_rank_are_the_step(self):
        facts = self.facts("pipe")
        self.assertEqual((facts["devices"], facts["mesh"], facts["fits"]), (8, "pipe=2,data=2,tensor=2", True))
        self.assertEqual([(rank["stage"], rank["devices"]) for rank in facts["ranks"]], [(0, 4), (1, 4)])
        for rank in facts["ranks"]:
            parts = sum(rank[part + "_seconds"] for part in ("compute", "collectives", "transfers", "idle"))
            self.assertAlmostEqual(parts, facts["step_seconds"], delta=1e-6 * parts)
            self.assertGreater(rank["collectives_seconds"], 0)
        self.assertGreater(facts["bubble"], 0)
        self.assertLess(facts["bubble"] + facts["exposed"], 1)
        self.assertEqual(len(facts["operations"]), 10)

    def test_memory_is_the_compilers(self):
        for model in ("pipe", "async", "whole", "gpu"):
            compiled = json.loads(subprocess.run([PARTITA, "inspect", self.path(model + ".partita"), "--json"], capture_output=True, text=True,
                                                 check=True).stdout)["compiled"]
            tables = compiled.get("memory_by_rank") or [compiled["memory"]]
            for rank, table in zip(self.facts(model)["ranks"], tables):
                self.assertEqual(rank["memory_bytes"], table["total"], model)
                self.assertEqual(rank["states_bytes"], table["optimizer_states"], model)
                self.assertGreaterEqual(rank["reserved_bytes"], table["scratch"], model)
                self.assertEqual(rank["reserved_bytes"] > 0, model == "gpu")

    def test_it_fits_where_the_planner_says_so(self):
        # A program may use the device's memory except for the driver's share. One byte less, and it does not fit.
        most = max(rank["memory_bytes"] for rank in self.facts("whole")["ranks"])
        for room, fits in ((most, True), (most - 1, False)):
            with open(self.path("small.yaml"), "w", encoding="utf-8") as file:
                file.write("device: {like: a100-80-sxm, memory: %d B, context: 1 GB}\n" % (room + 10**9))
            facts = self.facts("whole", cluster="small.yaml")
            self.assertEqual((facts["fits"], facts["device_memory_bytes"]), (fits, room))
        self.assertIn("it does not fit", self.simulate("whole", "--cluster", "small.yaml"))

    def test_what_moves_says_why(self):
        moves = [row for row in self.facts("pipe", "--operations", "1000")["operations"] if "bytes" in row]
        self.assertEqual([row for row in moves if not row.get("why")], [])
        self.assertIn("all_reduce", {row["kind"] for row in moves})
        # Each receive has the same reason as its send.
        received = sorted(row["why"].split(" (")[0] for row in moves if row["kind"] == "receive")
        self.assertEqual(received, ["stage 1 on rank 1 computes with it", "the gradient of stage 0 on rank 0 computes with it"])

    def test_without_a_flush_the_pipeline_is_full(self):
        self.assertLess(self.facts("async")["bubble"], 0.25)
        self.assertEqual(self.facts("whole")["bubble"], 0)

    def test_faults_and_networks_cost_time(self):
        sound = self.facts("pipe")
        slow = self.facts("pipe", "--fault", "device=3:0.5")
        self.assertGreater(slow["step_seconds"], 1.2 * sound["step_seconds"])
        self.assertGreater(len(slow["ranks"]), 2)
        self.assertGreater(self.facts("pipe", "--fault", "link=0-1:0.01")["step_seconds"], sound["step_seconds"])
        # Two devices per node: tensor parallelism within a node, data parallelism and pipeline across nodes.
        with open(self.path("nodes.yaml"), "w", encoding="utf-8") as file:
            file.write("name: nodes\ndevices: 8\ndevice: {like: a100-80-sxm}\nlevels:\n"
                       "  - {name: nvlink, devices: 2, bandwidth: 300 GB/s, latency: 3.4 us}\n"
                       "  - {name: network, devices: 8, bandwidth: 1 GB/s, latency: 50 us}\n")
        apart = self.facts("pipe", cluster="nodes.yaml")
        self.assertGreater(apart["exposed"], sound["exposed"])

    def test_statistics_of_a_batch_are_read_before_its_elements(self):
        with open(self.path("norm.mlir"), "w", encoding="utf-8") as file:
            file.write("""!x = tensor<8x32x32x64xf32>
                !c = tensor<64xf32>
                func.func @main(%x: !x, %g: !c, %b: !c, %m: !c, %v: !c) -> (!x, !c, !c) {
                  %y, %s:2 = nn.batch_norm %x, %g, %b, %m, %v feature = 3 epsilon = 1.0e-5 training : (!x, !c, !c, !c, !c) -> (!x, !c, !c)
                  return %y, %s#0, %s#1 : !x, !c, !c
                }""")
        with open(self.path("streams.yaml"), "w", encoding="utf-8") as file:
            file.write("device: {like: a100-80-sxm, tables: [{of: copy, sizes: [[1]], rates: [1]}]}\n")
        subprocess.run([PARTITA, "compile", self.path("norm.mlir"), "-o", self.path("norm.partita")], capture_output=True, check=True)
        image = 4 * 8 * 32 * 32 * 64
        self.assertAlmostEqual(self.facts("norm", cluster="streams.yaml")["step_seconds"], 4 * image / 1e9, delta=0.01 * image / 1e9)

    def test_trace(self):
        self.simulate("pipe", "--cluster", "8x a100-80-sxm", "--trace", "trace.json")
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, {0, 1})
        step = self.facts("pipe")["step_seconds"] * 1e6
        spans = [event for event in events if event["ph"] == "X"]
        self.assertLessEqual({event["cat"] for event in spans}, {"compute", "collective", "overlapped", "transfer", "receive", "wait"})
        for rank in (0, 1):
            row = sorted((event["ts"], event["dur"]) for event in spans if event["pid"] == rank and event["tid"] == 1)
            for (start, length), (following, _) in zip(row, row[1:]):
                self.assertLessEqual(start + length, following + 1e-3)
            self.assertLessEqual(sum(row[-1]), step + 1e-3)
        self.assertTrue(any(event["ph"] == "C" for event in events))

    def test_report(self):
        self.simulate("pipe", "--cluster", "8x a100-80-sxm", "--html", "report.html")
        with open(self.path("report.html"), encoding="utf-8") as file:
            page = file.read()
        for part in ("Where the time goes", "Timeline", "Memory over time", "Collectives and transfers", "all_reduce", "block_forward", "</html>"):
            self.assertIn(part, page)
        self.assertNotIn("runners-up", page)
        # Collectives with one reason are one line, which opens.
        table = page.split("Collectives and transfers")[1].split("Most expensive operations")[0]
        lines = re.findall(r"<tr><td>(\w+(?:<small>over [^<]+</small>)?)</td><td>(.*?)<details>", table)
        self.assertGreater(len(lines), 2)
        self.assertEqual(len(lines), len(set(lines)))
        self.assertRegex(table, r"each device along tensor has a partial result<details><summary>\d\d? operations</summary>"
                         r"<small>[^<]+ in block_\w+: [0-9.]+ K?B, [0-9.]+ a step, [^<]+</small>")
        # The report opens without a network.
        for part in ("http:", "https:", "src=", "@import"):
            self.assertNotIn(part, page)

    def test_table(self):
        text = self.simulate("pipe", "--cluster", "8x a100-80-sxm")
        self.assertIn("on 8 devices of ", text)
        self.assertIn("rank 0 and 3 like it, stage 0", text)
        self.assertIn("most expensive, mean of a device", text)

    def test_sweep(self):
        header = "model_family,layers,hidden,heads,ffn,seq_len,vocab,n_gpus,gpu,tp,pp,dp,mbs,gbs,precision"
        with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
            file.write(header + "\nGPT,24,2304,24,9216,2048,51200,32,A100-80GB-SXM,1,1,32,16,512,fp16 mixed\n")
        text = self.simulate_sweep("--sweep", "rows.csv", "-o", "predicted.csv")
        self.assertIn("1 of 1 rows predicted", text)
        with open(self.path("predicted.csv"), encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file))
        self.assertGreater(float(row["predicted_iter_time_s"]), 1)
        self.assertIn("expected -o FILE", self.simulate_sweep("--sweep", "rows.csv", code=2))
        self.assertIn("found both", self.simulate_sweep("--sweep", "rows.csv", "-o", "p.csv", "--trace", "t.json", code=2))
        self.assertIn("no.csv", self.simulate_sweep("--sweep", "no.csv", "-o", "p.csv", code=1))
        self.assertIn("or --sweep ROWS.csv", self.simulate_sweep(code=2))

    def test_sweep_of_other_gpus_and_of_nothing(self):
        header = "layers,hidden,heads,seq_len,gbs,gpu\n"
        with open(self.path("others.csv"), "w", encoding="utf-8") as file:
            file.write(header + "2,64,2,8,4,H100\n2,64,2,8,4,A100\n")
        done = subprocess.run([PARTITA, "simulate", "--sweep", "others.csv", "-o", "p.csv", "--cluster", "8x a100-80-sxm"], capture_output=True,
                              text=True, check=True, cwd=self.folder.name)
        self.assertEqual(done.stderr, "warning: --cluster: of 2 rows 1 have another gpu, the first 'H100', and are predicted on a100-80-sxm; leave "
                         "out --cluster to predict each on its own\n")
        with open(self.path("unknown.csv"), "w", encoding="utf-8") as file:
            file.write(header + "2,64,2,8,4,B9\n")
        self.simulate_sweep("--sweep", "unknown.csv", "-o", "p.csv", code=1)
        with open(self.path("unknown.csv"), "a", encoding="utf-8") as file:
            file.write("2,64,2,8,many,A100\n2,64,2,8,4,A100\n")
        text = self.simulate_sweep("--sweep", "unknown.csv", "-o", "p.csv")
        self.assertIn("1 of 3 rows predicted", text)
        self.assertIn("1 without, in line 3: gbs: expected a whole number of 1 to 4294967296, found 'many'", text)

    def simulate_sweep(self, *options, code=0):
        done = subprocess.run([PARTITA, "simulate", *options], capture_output=True, text=True, check=False, cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_devices_that_do_not_compute_in_its_precision(self):
        device = "device: {kind: gpu, %speak: {bf16: 989 TFLOP/s%s}, memory: 80 GB, memory_bandwidth: 3.35 TB/s}\n"
        for name, said in (("", "this device"), ("name: x1, ", "x1")):
            with open(self.path("half.yaml"), "w", encoding="utf-8") as file:
                file.write(device % (name, ""))
            self.assertIn("error: --cluster: the program computes in f32, found a peak of bf16 of %s: compile the model for such a precision "
                          "(--precision), or add one of f32 to the device's peak in a cluster file" % said,
                          self.simulate("whole", "--cluster", "half.yaml", "--json", code=1))
        with open(self.path("half.yaml"), "w", encoding="utf-8") as file:
            file.write(device % ("", ""))
        # Its products are in bf16, but not all its kernels. There are no estimates for those on a GPU.
        self.compile("half", "--precision", "bf16")
        self.assertIn("error: --cluster: kernels of the program compute in f32, found a peak of bf16 of this device: add one of f32 to the device's peak",
                      self.simulate("half", "--cluster", "half.yaml", code=1))
        self.compile("half_gpu", "--precision", "bf16", "--target", "cuda:sm_80")
        self.assertIn("a step takes ", self.simulate("half_gpu", "--cluster", "half.yaml"))
        with open(self.path("half.yaml"), "w", encoding="utf-8") as file:
            file.write(device % ("", ", f32: 67 TFLOP/s"))
        self.assertIn(" that programs have on a device\n", self.simulate("whole", "--cluster", "half.yaml"))

    def test_refusals(self):
        text = self.simulate("pipe", "--cluster", "4x a100-80-sxm", code=1)
        self.assertIn("--cluster: expected at least 8 devices, which the program runs on, found '4x a100-80-sxm' with 4", text)
        self.assertIn("the program has ranks 0 to 7", self.simulate("pipe", "--cluster", "8x a100-80-sxm", "--fault", "device=8:0.5", code=1))
        self.assertIn("the device has a fault already", self.simulate("pipe", "--cluster", "8x a100-80-sxm", "--fault", "device=1:0.5", "--fault",
                                                                      "device=1:0.2", code=2))
        self.assertIn("no/such", self.simulate("pipe", "--cluster", "8x a100-80-sxm", "--trace", "no/such/trace.json", code=1))
        self.assertIn("tpu-v9", self.simulate("pipe", "--cluster", "tpu-v9", code=1))
        self.assertIn("nothing.partita", self.simulate("nothing", "--cluster", "cpu", code=1))
        self.simulate("pipe", code=2)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
