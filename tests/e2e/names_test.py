"""Kernels and layers have readable names: in profiles, simulations, traces and on the page that partita inspect prints."""

import json
import os
import re
import subprocess
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
GPT2 = os.path.abspath("tests/data/onnx-tiny/gpt2")
NORM = "layer_norm[transformer.*]"


class NamesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.compile("infer", GPT2)
        cls.compile("onnx", GPT2 + "/model_eval.onnx")
        cls.compile("train", GPT2, "--train", "adamw", "--mesh", "data=2", "--shard", "B=data")

    @classmethod
    def compile(cls, name, model, *options):
        cls.partita("compile", model, "--dim", "batch=2,seq=8", "-o", name + ".partita", *options)

    @classmethod
    def partita(cls, *arguments):
        done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, check=False, cwd=cls.folder.name)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def labels(self, model):
        rows = json.loads(self.partita("inspect", model + ".partita", "--json"))["launched"]
        labels = [row["label"] for row in rows]
        self.assertEqual(len(labels), len(set(labels)))
        self.assertFalse([label for label in labels if label.startswith("kernel")])
        return labels

    def test_labels_name_operations_and_modules(self):
        # The first norm of a layer shares a kernel with the final norm.
        for model in ("infer", "onnx"):
            labels = self.labels(model)
            self.assertIn(NORM, labels)
            self.assertIn("add+layer_norm[transformer.h.*.ln_2]", labels)
            self.assertIn("attention[transformer.h.*.attn.c_attn]" if model == "infer" else "attention[transformer.h.*.attn]", labels)
        self.assertTrue(any(re.fullmatch(r"mul\+add.*\[transformer\..*\]", label) for label in self.labels("train")))

    def test_profiles_have_kernels_and_layers(self):
        for model in ("infer", "onnx"):
            run = ("run", model + ".partita", "--input", "input_ids=random:0:100", "--profile")
            profile = json.loads(self.partita(*run, "--json"))
            norm, = (row for row in profile["profile"] if row["name"] == NORM)
            self.assertEqual(norm["calls"], 3)
            layers = {row["layer"]: row for row in profile["layers"]}
            self.assertLessEqual({"transformer.h.0", "transformer.h.1", "transformer.ln_f"}, set(layers))
            self.assertEqual(layers["transformer.h.0"]["calls"], layers["transformer.h.1"]["calls"])
            self.assertAlmostEqual(sum(row["ms"] for row in profile["layers"]), sum(row["ms"] for row in profile["profile"]))
            text = self.partita(*run)
            self.assertRegex(text, r"\n" + re.escape(NORM) + r" +3 ")
            self.assertRegex(text, r"\nlayer +calls +ms +share\n(.*\n)*transformer\.h\.1 ")

    def test_profiles_are_compared_with_the_machine(self):
        run = ("run", "infer.partita", "--input", "input_ids=random:0:100", "--profile")
        empty, measured = (os.path.join(self.folder.name, name) for name in ("empty", "measured"))
        os.makedirs(os.path.join(measured, "partita"))
        with open(os.path.join(measured, "partita", "local.yaml"), "w", encoding="utf-8") as file:
            file.write("device: {name: cpu, kind: cpu, peak: {f32: 0.1 TFLOP/s}, memory: 8 GB, memory_bandwidth: 10 GB/s}\n")
        texts = {}
        for folder in (empty, measured):
            done = subprocess.run([PARTITA, *run], capture_output=True, text=True, check=True, cwd=self.folder.name,
                                  env={**os.environ, "XDG_CACHE_HOME": folder})
            texts[folder] = done.stdout
        self.assertIn("run `partita measure` once", texts[empty])
        self.assertNotIn("% peak", texts[empty])
        self.assertRegex(texts[measured], r"GB/s  % peak   % mem\n")
        self.assertRegex(texts[measured], r"\ngemm [^\n]* +\d+%  +\d+%\n")
        self.assertIn("share of the fastest products measured on this machine", texts[measured])

    def test_simulations_and_traces(self):
        text = self.partita("simulate", "infer.partita", "--cluster", "a100-80-sxm", "--trace", "trace.json", "--operations", "100")
        self.assertIn("kernel " + NORM + " in main\n", text)
        with open(os.path.join(self.folder.name, "trace.json"), encoding="utf-8") as file:
            names = {event["name"] for event in json.load(file)["traceEvents"]}
        self.assertTrue(any("[transformer." in name for name in names), names)

    def test_inspect_is_a_page(self):
        page = self.partita("inspect", "train.partita")
        self.assertLessEqual(len(page.splitlines()), 55)
        for part in ("model     gpt2: 50 operations, 28 parameters (30.6 thousand numbers)", "a training step with adamw for cpu", "devices   2: data=2",
                     "plan:\n  mesh: ", "inputs:\n", "outputs:\n", "memory of a device:\n", "optimizer states ", "10 of ", "(--all for the others)"):
            self.assertIn(part, page)
        self.assertNotIn("+avx", page)
        everything = self.partita("inspect", "train.partita", "--all")
        for row in json.loads(self.partita("inspect", "train.partita", "--json"))["launched"]:
            self.assertIn(" %s %s " % (row["label"], row["symbol"]), everything)


if __name__ == "__main__":
    unittest.main()
