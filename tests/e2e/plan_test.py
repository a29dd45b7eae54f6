"""partita plan: written plans compile and divide without changing results; tests of the table, JSON, plan diff, job scripts and
refusals.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
DATA = os.path.abspath("tests/data/onnx-tiny")
GPT2 = os.path.join(DATA, "gpt2_4l")
# Golden models: sizes, and divisions to request besides the free choice.
MODELS = {
    "gpt2": ("batch=8,seq=8", ["tp=2,dp=2"]),
    "gpt2_4l": ("batch=8,seq=8", ["pp=2,schedule=zb-v", "pp=4,vpp=1,schedule=1f1b", "pp=2,dp=2,zero=3", "pp=2,dp=2,offload=y"]),
    "bert_mlm": ("batch=8,seq=8", ["tp=2,pp=2"]),
    "t5": ("batch=8,seq=8,dec=6", ["tp=2"]),
    "vit": ("batch=8", ["dp=4,zero=1"]),
    "vit_3l": ("batch=8", ["tp=2,dp=2,zero=3"]),
}


# Hugging Face folders; their layers are one function that @main calls.
FOLDERS = {
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 16, "n_embd": 32,
             "n_layer": 6, "n_head": 4, "n_inner": 128},
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "max_position_embeddings": 16,
              "hidden_size": 32, "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
              "intermediate_size": 96, "hidden_act": "silu", "tie_word_embeddings": False},
}


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def partita(self, *arguments, code=0):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def plan(self, *arguments, code=0):
        return self.partita("plan", "--cluster", "4x a100-80-sxm", *arguments, code=code)

    def test_written_plans_compile(self):
        for name, (sizes, choices) in MODELS.items():
            for fixed in [None] + choices:
                with self.subTest(model=name, fixed=fixed):
                    options = [os.path.join(DATA, name, "model_train.onnx"), "--dim", sizes]
                    self.plan(*options, "-o", "plan.yaml", *(["--fix", fixed] if fixed else []))
                    self.partita("compile", *options, "--plan", "plan.yaml", "--train", "adamw", "-o", "step.partita")

    def test_loops_are_counted(self):
        with open(os.path.join(self.folder, "loop.mlir"), "w", encoding="utf-8") as file:
            file.write("""
func.func private @body(%go: tensor<i1>, %x: tensor<8x4xf32>) -> (tensor<i1>, tensor<8x4xf32>) {
  %half = arith.constant dense<0.5> : tensor<8x4xf32>
  %y = arith.mulf %x, %half : tensor<8x4xf32>
  %sum = nn.reduce sum %y dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  %limit = arith.constant dense<1.0> : tensor<f32>
  %again = arith.cmpf ogt, %sum, %limit : tensor<f32>
  return %again, %y : tensor<i1>, tensor<8x4xf32>
}
func.func @main(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
    %w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "m.h.0.w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
    %v: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "m.h.1.w", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<8x6xf32> {nn.name = "logits"}) {
  %go = arith.constant dense<true> : tensor<i1>
  %r:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<8x4xf32>) -> (tensor<i1>, tensor<8x4xf32>)
  %h = nn.dot_general %r#1, %w contract = [1] x [0] : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  %t = math.tanh %h : tensor<8x4xf32>
  %s = nn.dot_general %t, %v contract = [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}""")
        text = self.partita("plan", "loop.mlir", "--cluster", "2x cpu")
        self.assertIn("loops whose number of iterations depends on data: 1, counted as one iteration each", text)

    def test_folders(self):
        for name, layers in (("gpt2", 6), ("llama", 5)):
            with self.subTest(model=name):
                with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
                    json.dump(FOLDERS[name], file)
                options = [".", "--dim", "batch=8,seq=16"]
                facts = json.loads(self.plan(*options, "--fix", "pp=2", "--json", "-o", "plan.yaml"))
                self.assertIn("pipe 2", facts["division"])
                self.partita("compile", *options, "--plan", "plan.yaml", "--train", "adamw", "-o", "step.partita")
                # More stages than layers.
                self.assertIn("--fix pp: expected at most the %d layers, found 8" % layers, self.partita(
                    "plan", "--cluster", "8x a100-80-sxm", *options, "--fix", "pp=8", code=1))

    def test_divided_is_undivided(self):
        options = [GPT2, "--dim", "batch=8,seq=8"]
        self.plan(*options, "-o", "plan.yaml", "--fix", "tp=2,dp=2,sp=y")
        self.partita("verify", *options, "--plan", "plan.yaml")
        with open(os.path.join(self.folder, "plan.yaml"), encoding="utf-8") as file:
            self.assertIn("- {M: tensor, N: tensor, V: tensor}\n  - {L: tensor}\n", file.read())

    def test_facts(self):
        facts = json.loads(self.plan(GPT2, "--dim", "batch=8,seq=8", "--json"))
        self.assertAlmostEqual(sum(facts["parts"].values()), facts["step_seconds"], delta=1e-6 * facts["step_seconds"])
        self.assertEqual((facts["devices"], facts["batch"]), (4, 8))
        self.assertGreater(len(facts["alternatives"]), 2)
        for other in facts["alternatives"]:
            self.assertGreaterEqual(other["slower"], -1e-9)
        self.assertTrue(any("memory" in gain["what"] for gain in facts["gains"]))
        self.assertEqual([other["precision"] for other in facts["precisions"]], ["bf16"])
        text = self.plan(GPT2, "--dim", "batch=8,seq=8")
        for part in ("mesh: {", "chosen: ", "binds: ", "in bf16: ", "runners-up:", "savings per step with better hardware", "a step of a batch of 8 in "):
            self.assertIn(part, text)
        # A step far below a second has three digits.
        self.assertRegex(text.splitlines()[0], r" in [0-9.]{3,4} (ms|us), ")

    def test_precision_is_chosen(self):
        options = [GPT2, "--dim", "batch=8,seq=8", "--json"]
        auto = json.loads(self.plan(*options, "--precision", "auto"))
        for precision in ("f32", "bf16"):
            self.assertLessEqual(auto["step_seconds"], (1 + 1e-9) * json.loads(self.plan(*options, "--precision", precision))["step_seconds"])

    def test_rows(self):
        row = ["--row", "layers=4,hidden=4096,heads=32,seq_len=2048,vocab=51200", "--batch", "64"]
        free = json.loads(self.plan(*row, "--json"))
        narrow = json.loads(self.plan(*row, "--json", "--memory", "%d GB" % (0.9 * free["memory_bytes"] / 1e9)))
        self.assertLess(narrow["memory_bytes"], free["memory_bytes"])
        self.assertIn("memory: ", narrow["text"])
        text = self.plan(*row, "--memory", "1 GB", code=1)
        self.assertIn("expected a division within 1.0 GB a device, found none: the least ", text)
        # A limit above the device's memory is accepted with a warning: the plan may be for a larger device.
        done = subprocess.run([PARTITA, "plan", *row, "--cluster", "4x a100-80-sxm", "--memory", "400 GB"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stderr, "^warning: --memory: 400.0 GB is more than the [0-9.]+ GB that programs have on a100-80-sxm, where the plan may "
                         "not fit; for a device that has it, name a --cluster file with that memory\n$")
        self.assertIn("--batch", self.plan("--row", "layers=2,hidden=64,heads=2,seq_len=8", code=2))
        self.assertIn("--fix tp=", self.plan("--row", "layers=2,hidden=64,heads=2,seq_len=8,tp=2", "--batch", "4", code=2))
        for column, option in (("n_gpus", "--devices"), ("gpu", "--cluster"), ("precision", "--precision"), ("gbs", "--batch")):
            self.assertIn("found '%s', which is given as %s" % (column, option),
                          self.plan("--row", "layers=2,hidden=64,heads=2,seq_len=8,%s=4" % column, "--batch", "4", code=2))
        self.assertIn("--dim: applies to a model", self.plan(*row, "--dim", "batch=3", code=2))
        self.assertIn("found no 'hidden'", self.plan("--row", "layers=2,heads=2,seq_len=8", "--batch", "4", code=2))
        self.assertIn("found more than one 'layers'", self.plan("--row", "layers=2,layers=3,hidden=64,heads=2,seq_len=8", "--batch", "4", code=2))
        self.assertIn("hidden: says nothing", self.plan("--row", "layers=2,hidden=,heads=2,seq_len=8", "--batch", "4", code=2))

    def test_refusals(self):
        self.assertIn("expected a model, or --row", self.plan(code=2))
        self.assertIn("--fix: expected NAME=VALUE with tp, pp,", self.plan(GPT2, "--dim", "batch=8,seq=8", "--fix", "tp=x", code=2))
        self.assertIn("--batch: expected the model's own, 8, found 4",
                      self.plan(GPT2, "--dim", "batch=8,seq=8", "--batch", "4", code=1))
        self.assertIn("found 'tp' again as 'tp=2': leave out one", self.plan(GPT2, "--dim", "batch=8,seq=8", "--fix", "tp=1,tp=2", code=2))
        self.assertIn("tpu-v9", self.partita("plan", GPT2, "--dim", "batch=8,seq=8", "--cluster", "tpu-v9", code=1))
        self.assertIn("--devices: expected at most the 4 of", self.plan(GPT2, "--dim", "batch=8,seq=8", "--devices", "8", code=1))
        self.assertIn("at least 1", self.plan(GPT2, "--dim", "batch=8,seq=8", "--batch", "0", code=2))
        self.assertIn("--fix zero: expected 0 with dp=1, as ZeRO divides states over the devices that divide the batch, found 3",
                      self.plan(GPT2, "--dim", "batch=8,seq=8", "--fix", "dp=1,zero=3", code=1))
        self.assertIn("found both: '" + GPT2, self.plan(GPT2, "--row", "layers=2,hidden=64,heads=2,seq_len=8", code=2))
        self.assertIn("found 'seqlen'; did you mean 'seq_len'?",
                      self.plan("--row", "layers=2,hidden=64,heads=2,seqlen=8", "--batch", "4", code=2))
        self.assertIn("framework: expected one of partita, ",
                      self.plan("--row", "layers=2,hidden=64,heads=2,seq_len=8,framework=jax", "--batch", "4", code=2))

    # -o is checked before the search and before the model is read, which would fail here.
    def test_output_is_checked_first(self):
        with open(os.path.join(self.folder, "bad.onnx"), "w", encoding="utf-8") as file:
            file.write("no model")
        text = self.plan("bad.onnx", "-o", "nowhere/plan.yaml", code=1)
        self.assertIn("-o: nowhere/plan.yaml: cannot create a file in nowhere: ", text)
        self.assertNotIn("bad.onnx", text)
        self.assertEqual(os.listdir(self.folder), ["bad.onnx"])

    def test_diff(self):
        for name, fixed in (("a", "tp=2,dp=2,zero=0"), ("b", "tp=2,dp=2,zero=1"), ("c", "tp=2,dp=2,zero=1")):
            self.plan(GPT2, "--dim", "batch=8,seq=8", "-o", name + ".yaml", "--fix", fixed + ",mbs=2,recompute=none")
        self.assertIn("zero: - -> 1", self.partita("plan", "diff", "a.yaml", "b.yaml", code=1))
        self.assertEqual(self.partita("plan", "diff", "b.yaml", "c.yaml"), "")
        self.assertIn("zero: - -> 1", json.loads(self.partita("plan", "diff", "a.yaml", "b.yaml", "--json", code=1))["differences"])
        self.assertEqual(json.loads(self.partita("plan", "diff", "b.yaml", "c.yaml", "--json"))["differences"], [])
        self.assertIn("no.yaml", self.partita("plan", "diff", "a.yaml", "no.yaml", code=2))
        # The difference goes to standard output, errors to standard error.
        with open(os.path.join(self.folder, "bad.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {data: none}\n")
        self.assertIn("bad.yaml:1", self.partita("plan", "diff", "bad.yaml", "a.yaml", code=2))

    def test_slurm(self):
        self.plan(GPT2, "--dim", "batch=8,seq=8", "-o", "plan.yaml")
        script = self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm")
        with open(os.path.join(self.folder, "job.sh"), "w", encoding="utf-8") as file:
            file.write(script)
        subprocess.run(["bash", "-n", "job.sh"], check=True, cwd=self.folder)
        self.assertIn("#SBATCH --ntasks-per-node=4\n", script)
        self.assertIn("srun --ntasks=4 ", script)
        self.assertIn("#SBATCH --time=30\n", self.partita(
            "slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm", "--time", "30"))
        for option, value in (("--time", "soon"), ("--time", "-5"), ("--time", "1:2:3:4"), ("--time", "1-"), ("--account", "a b")):
            self.assertIn(option + ": expected", self.partita(
                "slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm", option, value, code=2))
        # The artifact was compiled with another plan.
        options = [GPT2, "--dim", "batch=8,seq=8"]
        self.partita("compile", *options, "--mesh", "data=2", "--shard", "B=data", "--train", "adamw", "-o", "two.partita")
        self.assertIn("found two.partita, which is for data=2: compile it with --plan", self.partita(
            "slurm", "two.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm", code=1))
        compile_step = ["compile", *options, "--plan", "plan.yaml", "--train", "adamw", "-o", "step.partita"]
        self.partita(*compile_step)
        self.assertIn("expected a program for the GPUs of a100-80-sxm, found step.partita, which is for cpu: compile it with --target cuda:sm_80",
                      self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm", code=1))
        self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "4x cpu")
        self.partita(*compile_step, "--target", "cuda:sm_80")
        self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "8x a100-80-sxm")
        self.assertIn("expected a program for the CPUs of cpu, found step.partita, which is for cuda:sm_80: compile it with --target cpu",
                      self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "4x cpu", code=1))
        self.assertIn("at most the 2 devices", self.partita("slurm", "step.partita", "--plan", "plan.yaml", "--cluster", "2x a100-80-sxm", code=1))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
