"""Tests errors as a user sees them: an exit code, one clear message, and no partial output."""

import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
PARTITA_RUN = os.path.abspath("runtime/tools/partita-run")
DATA = os.path.abspath("tests/data/onnx-tiny")


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *arguments, limit_file_size=None):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_file_size, limit_file_size))
        result = subprocess.run(arguments, capture_output=True, text=True, cwd=self.folder, timeout=120,
                                # Python ignores SIGXFSZ. A program started with it ignored gets an error, as on a full
                                # disk.
                                restore_signals=False,
                                preexec_fn=limit if limit_file_size else None)
        self.assertNotIn("PLEASE submit a bug report", result.stderr)
        return result

    def refuse(self, code, fragments, *arguments, **options):
        before = sorted(os.listdir(self.folder))
        result = self.run_command(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for fragment in fragments:
            self.assertIn(fragment, result.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "something half-written was left behind")

    def compile_gpt2(self):
        output = self.path("gpt2.partita")
        result = self.run_command(PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=1,seq=4", "-o", output)
        self.assertEqual(result.returncode, 0, result.stderr)
        return output

    def test_missing_file(self):
        self.refuse(1, ["no/model.onnx"], PARTITA, "compile", "no/model.onnx", "-o", "m.partita")

    def test_unknown_family_lists_the_known(self):
        self.refuse(1, ["coatnet-9", "coatnet-0"], PARTITA, "compile", "coatnet-9", "-o", "m.partita")

    def test_ir_no_program_can_express(self):
        for text, fragment in (
                ("func.func @main(%x: f32) -> f32 { return %x : f32 }", "tensors of static shape"),
                ("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }", "tensor<?xf32>"),
                ("func.func @main(%x: tensor<2xi4>) -> tensor<2xi4> { return %x : tensor<2xi4> }", "found i4"),
                ("func.func private @e(tensor<2xf32>) -> tensor<2xf32>\n"
                 "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                 "  %0 = func.call @e(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}", "'e'"),
                ("func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }", "main")):
            with open(self.path("m.mlir"), "w", encoding="utf-8") as file:
                file.write(text)
            self.refuse(1, [fragment], PARTITA, "compile", "m.mlir", "-o", "m.partita")

    def test_sizes_given_twice(self):
        model = os.path.join(DATA, "gpt2")
        self.refuse(2, ["one size for --dim batch, found 1 and 2"], PARTITA, "compile", model, "--dim", "batch=1,seq=4",
                    "--dim", "batch=2", "-o", "m.partita")
        self.refuse(2, ["one shape for --input-shape input_ids, found another"], PARTITA, "compile",
                    os.path.join(model, "model_eval.onnx"), "--input-shape", "input_ids=1,4", "--input-shape",
                    "input_ids=1,5", "-o", "m.partita")

    def write_numbers(self, name, numbers):
        header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, %d), }" % len(numbers)
        header += " " * (-(len(header) + 11) % 64) + "\n"
        with open(self.path(name), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.write(struct.pack("<%dq" % len(numbers), *numbers))
        return self.path(name)

    def test_tokens_and_labels_outside_the_vocabulary(self):
        with open(os.path.join(DATA, "gpt2", "config.json"), encoding="utf-8") as file:
            vocabulary = json.load(file)["vocab_size"]
        good = self.write_numbers("good.npy", [0, 1, vocabulary - 1, 2])
        bad = self.write_numbers("bad.npy", [0, 1, vocabulary, 2])
        # Ignored positions have other labels.
        ignored = self.write_numbers("ignored.npy", [0, -100, vocabulary - 1, 2])
        said = "row 0, element 2: expected a number below %d, the rows of the table that it is looked up in, found %d" % (
            vocabulary, vocabulary)
        model = self.compile_gpt2()
        self.refuse(1, ["input 'input_ids', " + said], PARTITA_RUN, model, "--input", "input_ids=" + bad)
        step = self.path("step.partita")
        result = self.run_command(PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=2,seq=4", "--train", "sgd",
                                  "--mesh", "d=2", "--shard", "B=d", "-o", step)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, labels in (("good", good), ("bad", bad), ("ignored", ignored)):
            with open(labels, "rb") as file:
                data = file.read()
            with open(self.path(name + "2.npy"), "wb") as file:  # the same row twice
                file.write(data[:128].replace(b"(1, 4)", b"(2, 4)") + data[128:] * 2)
        train = [PARTITA_RUN, "train", step, "--steps", "1", "--input", "input_ids=" + self.path("good2.npy"), "--input"]
        self.refuse(1, ["input 'targets', " + said], *train, "targets=" + self.path("bad2.npy"))
        result = self.run_command(*train, "targets=" + self.path("ignored2.npy"))
        self.assertEqual(result.returncode, 0, result.stderr)

    def compile_text(self, code, fragments, text, *options):
        with open(self.path("m.mlir"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.refuse(code, fragments, PARTITA, "compile", "m.mlir", "-o", "m.partita", *options)

    def test_function_that_calls_itself(self):
        self.compile_text(1, ["call themselves", "'f'"],
                          "func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
                          "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}")

    def test_phase_that_fails_is_our_bug(self):
        # A hand-written kernel with a forbidden call.
        self.compile_text(70, ["bug of ours", "phase 'code'"],
                          "func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  %0 = math.exp %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
                          "func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {\n"
                          "  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
                          "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  %0 = exec.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                          "  return %0 : tensor<4xf32>\n}")

    def test_phase_that_fails_is_our_bug_where_plans_are_judged(self):
        # A hand-written kernel that is also a layer: the kernel's part does not cover the layer.
        with open(self.path("m.mlir"), "w", encoding="utf-8") as file:
            file.write("func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {\n"
                       "  %0 = math.exp %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
                       "func.func @main(%x: tensor<4xf32> {nn.kind = \"input\", nn.name = \"x\"},\n"
                       "    %y: tensor<4xf32> {nn.kind = \"input\", nn.name = \"y\"}) -> (tensor<4xf32>, tensor<4xf32>) {\n"
                       "  %0 = exec.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                       "  %1 = call @k(%y) : (tensor<4xf32>) -> tensor<4xf32>\n"
                       "  return %0, %1 : tensor<4xf32>, tensor<4xf32>\n}")
        for command in ("explain", "verify"):
            self.refuse(70, ["bug of ours", "phase 'partition'"], PARTITA, command, "m.mlir", "--mesh", "t=2", "--shard", "B=t")

    def test_places_are_files_or_names(self):
        with open(self.path("m.mlir"), "w", encoding="utf-8") as file:
            file.write("func.func @main(%x: tensor<2xi4>) -> tensor<2xi4> { return %x : tensor<2xi4> }")
        result = self.run_command(PARTITA, "compile", "m.mlir", "-o", "m.partita")
        self.assertIn("[at m.mlir:1:", result.stderr)
        result = self.run_command(PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "seq=99999", "-o", "m.partita")
        self.assertIn("config.json]", result.stderr)
        self.assertNotIn("loc(", result.stderr)

    def test_usage_errors_say_what_was_expected_and_found(self):
        for text, arguments in (
                ("expected a command, found none", []),
                ("expected model, found none", ["compile"]),
                ("expected --output, found none", ["compile", "m.onnx"]),
                ("expected a value after --dim, found none", ["compile", "m.onnx", "--dim"]),
                ("--zero: expected 0 to 3, found 7", ["compile", "m.onnx", "-o", "m.partita", "--zero", "7"]),
                ("--output: expected once, found 2 times", ["compile", "m.onnx", "-o", "a", "-o", "b"]),
                ("expected no further arguments, found 'extra'", ["compile", "m.onnx", "extra", "-o", "m.partita"]),
                ("expected one of --trace and --sweep, found both", ["simulate", "--sweep", "a.csv", "--trace", "t"]),
                ("expected --html with --choice, found none", ["simulate", "m.partita", "--choice", "c"])):
            self.refuse(2, [text, "--help."], PARTITA, *arguments)
        self.refuse(2, ["Try partita plan diff --help."], PARTITA, "plan", "diff")

    def test_unknown_cpu_names_the_near_ones(self):
        # The option is checked before the model is read; this model does not exist.
        self.refuse(2, ["--cpu", "x86-64-v9", "x86-64-v3"], PARTITA, "compile", "no/model.onnx", "--cpu", "x86-64-v9", "-o",
                    "m.partita")
        self.refuse(2, ["--target", "tpu", "cuda:sm_90"], PARTITA, "compile", "no/model.onnx", "--target", "tpu", "-o", "m.partita")

    def test_named_cpu_is_recorded(self):
        output = self.path("m.partita")
        result = self.run_command(PARTITA, "compile", os.path.join(DATA, "gpt2"), "--cpu", "x86-64-v3", "-o", output)
        # Phases are listed only if compiling takes seconds.
        said = [line for line in result.stderr.splitlines() if not re.fullmatch(r"  \w+ +[0-9.]+ s", line)]
        self.assertEqual((result.returncode, said), (0, []))
        self.assertIn("30.6 thousand", result.stdout)
        self.assertIn("KB", result.stdout)
        table = self.run_command(PARTITA, "inspect", output, "--all").stdout
        self.assertIn("+avx2,", table)
        self.assertNotIn("+avx512f", table)
        keys = [line.split()[0] for line in table.split(":\n")[0].splitlines()[:-1] if not line.startswith(" ")]
        self.assertEqual(keys, sorted(keys))
        self.assertLessEqual(max(len(line) for line in table.split("\nfunctions:")[0].splitlines()), 80)

    def test_dump_folder_that_cannot_be_made(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        self.refuse(1, ["--dump-dir", "file/ir"], PARTITA, "compile", "no/model.onnx", "--dump-dir", "file/ir", "-o",
                    "m.partita")

    def test_standard_output_full(self):
        output = self.compile_gpt2()
        for arguments in ((PARTITA, "inspect", output), (PARTITA, "--help"), (PARTITA_RUN, "--help"),
                          (PARTITA_RUN, "train", "--help"), (PARTITA_RUN, output, "--input", "input_ids=zeros")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("standard output", result.stderr)

    def test_unknown_option_before_what_is_missing(self):
        self.refuse(2, ["no option '--dims'", "'--dim'"], PARTITA, "compile", "--dims", "batch=1")
        self.refuse(2, ["'compil'", "'compile'"], PARTITA, "compil", "gpt2")

    def test_help_names_the_program(self):
        self.assertIn("\nUsage: partita compile", self.run_command(PARTITA, "compile", "--help").stdout)

    def test_size_beyond_the_model(self):
        self.refuse(1, ["seq", "at most 32", "--dim"], PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "seq=99999",
                    "-o", "m.partita")
        model = os.path.join(DATA, "gpt2/model_eval.onnx")
        hint = "exported for smaller sizes"
        self.refuse(1, ["--dim batch=1,seq=99999", hint], PARTITA, "compile", model, "--dim", "batch=1,seq=99999", "-o",
                    "m.partita")
        # No hint if something else is wrong.
        self.assertNotIn(hint, self.run_command(PARTITA, "inspect", model, "--dim", "batch=1").stderr)

    def test_shapes_and_optional_inputs(self):
        model = os.path.join(DATA, "gpt2/model_eval.onnx")
        result = self.run_command(PARTITA, "inspect", model, "--input-shape", "input_ids=2,8")
        self.assertIn("tensor<2x8xi64>", result.stdout)
        self.refuse(2, ["NAME=SIZES", "input_ids=2,x"], PARTITA, "inspect", model, "--input-shape", "input_ids=2,x")
        self.refuse(1, ["--optional-inputs"], PARTITA, "inspect", model, "--optional-inputs", "none")
        self.refuse(1, ["--input-shape"], PARTITA, "inspect", os.path.join(DATA, "gpt2"), "--input-shape", "input_ids=2,8")
        self.assertIn("attention_mask", self.run_command(PARTITA, "inspect", "bert-base").stdout)
        self.assertNotIn("attention_mask",
                         self.run_command(PARTITA, "inspect", "bert-base", "--optional-inputs", "none").stdout)
        self.refuse(1, ["mask", "attention_mask"], PARTITA, "inspect", "bert-base", "--optional-inputs", "mask")

    def test_plans_that_do_not_fit(self):
        gpt2 = (PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=1,seq=4", "-o", "m.partita", "--mesh", "t=2")
        self.refuse(1, ["--shard: shard at", "'h.9.*'", "matches none", "similar names are"], *gpt2, "--shard", "M=t@h.9.*")
        self.refuse(2, ["--shard: shard 'B'", "'t' here and in entry 1"], *gpt2, "--shard", "B=t;B=t")
        self.refuse(2, ["--devices: expected the 2 devices of the mesh {t: 2} (--mesh), found 3"], *gpt2, "--shard", "M=t;",
                    "--devices", "3")

    def test_exit_codes_say_whose_mistake_it_is(self):
        # Exit code 2: the command line itself is wrong, for any files. 1: a file or model that it names.
        gpt2 = os.path.join(DATA, "gpt2")
        compiling = ("compile", "no/model.onnx", "-o", "m.partita")
        planning = ("plan", "--row", "layers=2,hidden=64,heads=2,seq_len=8", "--batch", "4", "--cluster")
        simulating = ("simulate", "no.partita", "--cluster", "8x a100-80-sxm")
        for code, fragment, arguments in (
                (1, "no/model.onnx", compiling),
                (2, "--precision: expected f32", (*compiling, "--precision", "f64")),
                (2, "--memory: expected a number", (*compiling, "--memory", "20 k")),
                (2, "recompute", (*compiling, "--train", "adamw", "--recompute", "some")),
                (2, "--shard: expected --mesh", (*compiling, "--shard", "B=d")),
                (1, "no.yaml", (*compiling, "--plan", "no.yaml")),
                (2, "found both", (*compiling, "--plan", "no.yaml", "--mesh", "d=2")),
                (1, "tpu", (*planning, "tpu")),
                (2, "--fix: expected NAME=VALUE", (*planning, "tpu", "--fix", "tp=x")),
                (2, "--memory: expected a number", (*planning, "tpu", "--memory", "5 XB")),
                (2, "--memory: expected at least 1 byte per device, found '0 GB'", (*planning, "tpu", "--memory", "0 GB")),
                (2, "--row", ("plan", "--row", "layers=x", "--batch", "4", "--cluster", "tpu")),
                (1, "no.partita", simulating),
                (2, "the share must be above 0 and at most 1", (*simulating, "--fault", "device=0:0")),
                (2, "'-1' is no rank", (*simulating, "--fault", "device=-1:0.5")),
                (2, "--operations: expected a whole number of at least 0, found '-1'", (*simulating, "--operations", "-1")),
                (2, "--costs: expected times", ("inspect", "no.yaml", "--schedule", "--costs", "X=1")),
                (2, "--data-range: expected two shares from 0 to 1", ("train", "no.partita", "--data-range", "1:0")),
                (1, "expected a divisor of the 4 heads, found 3", ("plan", gpt2, "--dim", "batch=8,seq=8", "--cluster", "8x a100-80-sxm", "--fix", "tp=3"))):
            with self.subTest(arguments=arguments):
                self.refuse(code, [fragment], PARTITA, *arguments)

    def test_zero_belongs_to_training(self):
        gpt2 = (os.path.join(DATA, "gpt2"), "--dim", "batch=2,seq=4", "--mesh", "t=2", "--zero", "1")
        for command in ("explain", "verify"):
            self.refuse(1, ["error: --zero: 1 divides training state, and this program does not train"], PARTITA, command,
                        *gpt2, "--shard", "B=t")
        compiling = (PARTITA, "compile", *gpt2, "-o", "m.partita")
        self.refuse(1, ["error: --zero: 1 divides training state, and this program does not train"], *compiling, "--shard",
                    "B=t")
        self.refuse(1, ["error: --zero: 1 divides", "no entry divides B"], *compiling, "--shard", "M=t")

    def test_schedule(self):
        gpt2 = (PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=4,seq=4", "-o", "m.partita", "--schedule")
        self.refuse(2, ["--schedule: expected --mesh and --shard beside it, which divide D"], *gpt2, "gpipe")
        data = ("--mesh", "d=2", "--shard", "B=d")
        self.refuse(2, ["--schedule: expected devices along D, which run the stages of a pipeline"], *gpt2, "gpipe", *data)
        self.refuse(2, ["--schedule: expected gpipe, 1f1b", "found '1f1'; did you mean '1f1b'?"], *gpt2, "1f1", *data)
        self.refuse(2, ["--schedule: interleaved: expected a whole number from 2 to 65536 of stages per device, found 'x'"],
                    *gpt2, "interleaved(x)", *data)
        with open(self.path("p.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2}\nshard: [{B: d}]\n")
        self.refuse(2, ["expected either --plan or --mesh", "found both"], *gpt2, "gpipe", "--plan", "p.yaml")

    def test_stages(self):
        gpt2 = (PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=4,seq=4", "-o", "m.partita")
        self.refuse(1, ["--shard: shard 'D': stages: expected at least one stage and a piece of the model for each, found 64 stages",
                        "divide D over fewer devices"], *gpt2, "--mesh", "p=64", "--shard", "D=p")
        for last, fragments in (('"*.h.7"', ["p.yaml:3:25: stages to: expected a pattern of layers of the model, found '*.h.7'", "similar names are"]),
                                ('"*.wpe"', ["p.yaml:3:25: stages to: expected layers in the order", "not behind '*.h.0'"])):
            with open(self.path("p.yaml"), "w", encoding="utf-8") as file:
                file.write('mesh: {p: 2}\nshard: [{D: p}]\nstages: [{to: "*.h.0"}, {to: %s}]\n' % last)
            self.refuse(1, fragments, *gpt2, "--plan", "p.yaml")

    def test_microbatches(self):
        gpt2 = (PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=4,seq=4", "-o", "m.partita", "--microbatches")
        self.refuse(1, ["--microbatches: expected 1 where nothing is trained, found 2"], *gpt2, "2")
        self.refuse(1, ["expected input 'input_ids' to have a batch that divides by 3, found 4"], *gpt2, "3", "--train", "adamw")
        self.refuse(1, ["microbatches: expected a loss whose parts add up"], *gpt2, "2", "--train", "adamw", "--loss", "none")

    def test_numbers_of_training(self):
        gpt2 = (PARTITA, "compile", os.path.join(DATA, "gpt2"), "-o", "m.partita", "--train", "adamw")
        for option, value, expected in (("--beta1", "1.5", "from 0 to below 1"), ("--clip-norm", "-1", "at least 0"),
                                        ("--weight-decay", "nan", "at least 0"), ("--loss-scale", "3", "a power of two")):
            self.refuse(2, [f"{option}: expected a", expected, f"found '{value}'"], *gpt2, option, value)

    def test_memory_a_device_has(self):
        compile_gpt2 = [PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim", "batch=4,seq=4", "--train", "adamw", "-o", "m.partita"]
        self.refuse(1, ["error: --memory: expected at most 20.0 KB a device, found ", "optimizer states ", "what would help: offload: optimizer (keeps ",
                        "; recompute: full, or budget",
                        "precision: bf16; a smaller batch, or more devices", " of parameters: transformer.wte.weight"],
                    *compile_gpt2, "--memory", "20 kB")
        with open(self.path("plan.yaml"), "w", encoding="utf-8") as file:
            file.write("mesh: {d: 2}\nshard: [{B: d}]\nprecision: bf16\nrecompute: budget\nmemory: 20 kB\n")
        self.refuse(1, ["error: plan.yaml:5:9: memory: expected at most 20.0 KB a device, found ", "what would help: zero: 1 (divides ",
                        "of optimizer states over 2 devices); zero: 2 (divides ", "; a smaller batch, or more devices"], *compile_gpt2, "--plan", "plan.yaml")
        self.refuse(2, ["error: --memory: ", "found '20 k'"], *compile_gpt2, "--memory", "20 k")
        self.refuse(1, ["recompute: budget: expected a memory limit beside it, as in memory: 4 GB; found none"], *compile_gpt2,
                    "--recompute", "budget")
        self.refuse(2, ["expected either --plan or", "put them into plan.yaml"], *compile_gpt2, "--plan", "plan.yaml", "--recompute", "full")
        self.refuse(1, ["--recompute: recompute at: expected a pattern of layers of the model, found 'h.9'", "similar names are "], *compile_gpt2,
                    "--recompute", "selective;full@h.9")

    def test_weights_without_names_matter_to_training(self):
        model = (PARTITA, "compile", os.path.join(DATA, "coatnet_bias/model_eval.onnx"), "--dim", "batch=2", "-o", "m.partita")
        self.assertNotIn("modules' names", self.run_command(*model).stderr)
        said = self.run_command(*model, "--train", "sgd").stderr
        self.assertIn("note: expected weights with their modules' names, found 7 of 67 without: they are constants", said)
        self.assertIn("optimize=False", said)

    def test_axis_that_divides_nothing(self):
        result = self.run_command(PARTITA, "explain", os.path.join(DATA, "gpt2"), "--dim", "batch=2,seq=4", "--mesh",
                                  "data=2,tensor=2", "--shard", "B=data")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("divides nothing"), 1, result.stderr)
        self.assertIn("axis 'tensor' divides nothing: its 2 devices compute the same; add an entry for it, or leave it out of "
                      "the mesh", result.stderr)

    def test_microbatches_of_one_row(self):
        compile_step = (PARTITA, "compile", os.path.join(DATA, "gpt2/model_eval.onnx"), "--dim", "batch=8,seq=4", "--train", "adamw", "--mesh",
                        "pipe=2,data=2", "--shard", "D=pipe,B=data", "--zero", "1", "-o", "m.partita", "--microbatches")
        result = self.run_command(*compile_step, "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("divides nothing"), 1, result.stderr)
        self.assertIn("--shard: shard 'B' divides nothing: 8 microbatches leave a batch of one row; take fewer, or a larger batch", result.stderr)
        self.assertNotIn("divides nothing", self.run_command(*compile_step, "4").stderr)

    def test_what_is_read_is_not_written_over(self):
        shutil.copytree(os.path.join(DATA, "gpt2"), self.path("gpt2"))
        for file, text in (("plan.yaml", "mesh: {d: 2}\nshard: [{B: d}]\n"), ("cluster.yaml", "devices: 1\ndevice: {like: cpu}\n"),
                           ("rows.csv", "layers\n1\n"), ("choice.json", "{}\n")):
            with open(self.path(file), "w", encoding="utf-8") as stream:
                stream.write(text)
        os.symlink("gpt2/model_eval.onnx", self.path("link.onnx"))
        artifact = os.path.basename(self.compile_gpt2())
        simulate = ("simulate", artifact, "--cluster", "cluster.yaml")
        cases = (("gpt2/model_eval.onnx", "-o", "compile", "link.onnx", "--dim", "batch=2,seq=4"),
                 ("./plan.yaml", "-o", "compile", "gpt2", "--plan", "plan.yaml"),
                 ("gpt2/config.json", "-o", "compile", "gpt2/"),
                 ("gpt2/model_eval.onnx", "-o", "plan", "link.onnx", "--cluster", "cpu"),
                 ("./cluster.yaml", "-o", "plan", "gpt2", "--cluster", "cluster.yaml"),
                 ("./" + artifact, "--trace", *simulate), ("./cluster.yaml", "--html", *simulate),
                 ("./choice.json", "--html", *simulate, "--choice", "choice.json"), ("./rows.csv", "-o", "simulate", "--sweep", "rows.csv"))
        for output, option, *command in cases:
            with self.subTest(command=command, output=output):
                with open(self.path(output), "rb") as file:
                    before = file.read()
                self.refuse(2, [f"{option}: expected a file other than those the command reads, found {output}, which belongs to "],
                            PARTITA, *command, option, output)
                with open(self.path(output), "rb") as file:
                    self.assertEqual(file.read(), before)

    def test_names_of_ones_own(self):
        with open(self.path("p.yaml"), "w", encoding="utf-8") as file:
            file.write('mesh: {t: 2}\nnames: ["*.mlp.c_fc.weight:1=gates"]\n')
        self.refuse(1, ["p.yaml:2:9: names: expected the name of a dimension of tensors, B, M, ", "found 'gates'"], PARTITA,
                    "explain", os.path.join(DATA, "gpt2"), "--plan", "p.yaml")

    def test_annotating_a_file_in_place(self):
        model = os.path.join(DATA, "gpt2/model_eval.onnx")
        shutil.copyfile(model, self.path("m.onnx"))
        annotate = (PARTITA, "annotate", "m.onnx", "--dim", "batch=2,seq=4", "--mesh", "t=2", "--shard", "B=t", "-o")
        self.refuse(1, ["-o: expected a file other than the model, found ./m.onnx"], *annotate, "./m.onnx")
        with open(model, "rb") as before, open(self.path("m.onnx"), "rb") as after:
            self.assertEqual(before.read(), after.read())
        self.refuse(1, ["--configuration: expected a name, found ''"], *annotate, "n.onnx", "--configuration", "")

    def test_rule_that_divides_to_wrong_numbers(self):
        self.compile_text(1, ["nn.rule", "to hold when the operation is divided"],
                          "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                          "  %0 = nn.softmax %x axis = 0 {nn.rule = #nn.rule<([i]) -> ([i]) {i=8}>} : tensor<8xf32>\n"
                          "  return %0 : tensor<8xf32>\n}", "--mesh", "t=2", "--shard", "B=t")
        # The rule is not used to name dimensions either.
        self.refuse(1, ["to hold when the operation is divided"], PARTITA, "inspect", "m.mlir")

    def test_wrong_command_line(self):
        self.assertEqual(self.run_command(PARTITA, "compile", "--colour").returncode, 2)
        self.assertEqual(self.run_command(PARTITA, "no-such-command").returncode, 2)
        self.assertEqual(self.run_command(PARTITA).returncode, 2)

    def test_wrong_dim(self):
        self.refuse(2, ["batch=8,seq=128", "batch=zero"], PARTITA, "compile", os.path.join(DATA, "gpt2"), "--dim",
                    "batch=zero", "-o", "m.partita")

    def test_symbolic_dim_without_size(self):
        self.refuse(1, ["--dim", "batch", "seq"], PARTITA, "compile", os.path.join(DATA, "gpt2/model_eval.onnx"), "-o",
                    "m.partita")

    def test_truncated_onnx(self):
        with open(os.path.join(DATA, "gpt2/model_eval.onnx"), "rb") as file:
            content = file.read()
        with open(self.path("cut.onnx"), "wb") as file:
            file.write(content[:len(content) // 2])
        self.refuse(1, ["cut.onnx"], PARTITA, "compile", "cut.onnx", "--dim", "batch=1,seq=4", "-o", "m.partita")

    def test_truncated_safetensors(self):
        shutil.copytree(os.path.join(DATA, "gpt2"), self.path("gpt2"), copy_function=shutil.copyfile)
        weights = self.path("gpt2/weights.safetensors")
        os.chmod(self.path("gpt2"), 0o755)
        os.truncate(weights, os.path.getsize(weights) - 100)
        self.refuse(1, ["weights.safetensors"], PARTITA, "compile", "gpt2", "-o", "m.partita")

    def test_weights_of_another_model(self):
        gpt2, other = os.path.join(DATA, "gpt2"), os.path.join(DATA, "gpt2_4l")
        self.refuse(1, ["gpt2_4l", "missing", "unexpected"], PARTITA, "compile", gpt2, "--weights", other, "-o", "m.partita")
        os.mkdir(self.path("empty"))
        self.refuse(1, ["empty", "model.safetensors.index.json", "checkpoint"], PARTITA, "compile", gpt2, "--weights", "empty",
                    "-o", "m.partita")

    def test_full_disk(self):
        self.refuse(1, ["expected to write"], PARTITA, "compile", os.path.join(DATA, "gpt2"), "-o", "m.partita",
                    limit_file_size=4096)

    def test_output_folder_does_not_exist(self):
        self.refuse(1, ["no/where/m.partita"], PARTITA, "compile", os.path.join(DATA, "gpt2"), "-o", "no/where/m.partita")

    def test_corrupted_artifact(self):
        output = self.compile_gpt2()
        size = os.path.getsize(output)
        for position in (0, 9, 40, size // 2, size - 1):
            broken = self.path("broken.partita")
            shutil.copyfile(output, broken)
            with open(broken, "r+b") as file:
                file.seek(position)
                byte = file.read(1)
                file.seek(position)
                file.write(bytes([byte[0] ^ 0x55]))
            result = self.run_command(PARTITA_RUN, broken, "--input", "input_ids=zeros")
            self.assertIn(result.returncode, (0, 1), result.stderr)
            if result.returncode == 0:  # only damage to padding between sections may go unnoticed
                self.assertNotIn(position, (0, 9, 40))
            else:
                self.assertIn("broken.partita", result.stderr)

    def test_missing_input_lists_all(self):
        output = self.compile_gpt2()
        self.refuse(1, ["input_ids", "i64[1,4]"], PARTITA_RUN, output)

    def test_training_what_is_not_compiled_for_it(self):
        output = self.compile_gpt2()
        self.refuse(1, ["updates no parameter; compile the model with --train"],
                    PARTITA, "train", output, "--input", "input_ids=zeros", "--steps", "1")
        self.refuse(2, ["partita-run train: expected --steps"], PARTITA, "train", output, "--input", "input_ids=zeros")

    def test_wrong_shape_and_dtype(self):
        output = self.compile_gpt2()
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5), }"
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        with open(self.path("x.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 20)
        self.refuse(1, ["input_ids", "i64", "f32"], PARTITA_RUN, output, "--input", "input_ids=x.npy")

    # Halves x while the sum is below 1: never again for ones, without end for zeros.
    HALVING = """
func.func private @body(%go: tensor<i1>, %x: tensor<8x4xf32>) -> (tensor<i1>, tensor<8x4xf32>) {
  %half = arith.constant dense<0.5> : tensor<8x4xf32>
  %y = arith.mulf %x, %half : tensor<8x4xf32>
  %sum = nn.reduce sum %y dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  %limit = arith.constant dense<1.0> : tensor<f32>
  %again = arith.cmpf olt, %sum, %limit : tensor<f32>
  return %again, %y : tensor<i1>, tensor<8x4xf32>
}
func.func @main(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"}) -> (tensor<8x4xf32> {nn.name = "y"}) {
  %go = arith.constant dense<true> : tensor<i1>
  %r:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<8x4xf32>) -> (tensor<i1>, tensor<8x4xf32>)
  return %r#1 : tensor<8x4xf32>
}"""

    def test_loop_without_end(self):
        with open(self.path("loop.mlir"), "w", encoding="utf-8") as file:
            file.write(self.HALVING)
        for options in ([], ["--mesh", "d=4", "--shard", "B=d"]):
            result = self.run_command(PARTITA, "compile", "loop.mlir", *options, "-o", "loop.partita")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.refuse(1, ["expected the loop to end within 1 s", "a longer --timeout lets it go on"], PARTITA_RUN,
                        "loop.partita", "--input", "x=zeros", "--timeout", "1")
            result = self.run_command(PARTITA_RUN, "loop.partita", "--input", "x=ones", "--timeout", "1")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_loop_on_gpus(self):
        self.compile_text(1, ["expected target cpu for a model with a loop whose number of iterations depends on data",
                              "found cuda:sm_90; compile it with --target cpu"], self.HALVING, "--target", "cuda:sm_90")

    def test_escaping_weight_path(self):
        os.mkdir(self.path("model"))
        shutil.copyfile(os.path.join(DATA, "gpt2/config.json"), self.path("model/config.json"))
        shutil.copyfile(os.path.join(DATA, "gpt2/weights.safetensors"), self.path("w.safetensors"))
        with open(self.path("model/model.safetensors.index.json"), "w", encoding="utf-8") as file:
            file.write('{"metadata": {}, "weight_map": {"transformer.wte.weight": "../w.safetensors"}}')
        self.refuse(1, ["../w.safetensors"], PARTITA, "compile", "model", "-o", "m.partita")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
