"""An architecture's row and the compiled program say the same: what is sent, along which axes, how often; within 2 %, how
much memory it takes and how long.

One route is `partita simulate --sweep` on a row, which compiles nothing; the other one compiles the same model for the
same division and counts in the artifact (`partita simulate --json`).
"""

import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
LIMIT = 0.02

GPT = dict(family="GPT", layers=8, hidden=256, heads=8, kv=8, ffn=1024, seq=128, vocab=1024, tied=True)
# Of the golden models' sizes (tests/data/onnx-tiny: gpt2, gpt2_4l; as files they have masks besides).
TINY = dict(GPT, layers=2, hidden=32, heads=4, kv=4, ffn=128, seq=32, vocab=128)
TINY_4L = dict(GPT, layers=4, hidden=48, heads=6, kv=6, ffn=192, seq=32, vocab=127)
GPT2 = dict(GPT, layers=12, hidden=768, heads=12, kv=12, ffn=3072, seq=1024, vocab=51200)
LLAMA = dict(GPT, family="LLAMA", ffn=768, tied=False)
GROUPED = dict(LLAMA, kv=4)
GPT3 = dict(GPT, layers=96, hidden=12288, heads=96, kv=96, ffn=49152, seq=2048, vocab=51200)
LLAMA_70B = dict(GROUPED, layers=80, hidden=8192, heads=64, kv=8, ffn=28672, seq=4096, vocab=32768)


def row(model, tp=1, dp=1, pp=1, sp=False, zero=0, m=1, mbs=1, recompute="none", precision="bf16", vpp=1):
    return dict(model=model, tp=tp, dp=dp, pp=pp, sp=sp, zero=zero, m=m, mbs=mbs, recompute=recompute, precision=precision, vpp=vpp)


ROWS = [row(model, **division) for model in (GPT, LLAMA, GROUPED) for division in (
    dict(dp=4, mbs=2), dict(dp=4, m=4), dict(dp=2, zero=1), dict(dp=4, zero=1, m=2), dict(dp=4, zero=2, m=4),
    dict(tp=2, mbs=2), dict(tp=4, dp=2, m=2), dict(tp=2, dp=4, m=2, zero=1), dict(tp=2, sp=True), dict(tp=4, dp=2, sp=True, m=2),
    dict(pp=2, m=4), dict(pp=4, dp=2, m=8), dict(pp=2, dp=2, tp=2, m=4, zero=1), dict(pp=2, vpp=2, m=4),
    dict(tp=2, recompute="full"), dict(tp=2, dp=2, m=2, recompute="full"), dict(tp=2, dp=2, precision="f32"))] + [
        row(TINY, dp=2, mbs=2), row(TINY_4L, dp=2, mbs=2), row(GPT2, tp=2, mbs=4),
        row(GPT2, tp=4, dp=2, zero=1, m=2), row(GPT2, pp=4, dp=8, m=8), row(GPT2, dp=64, m=4),
        row(dict(GPT3, layers=16), tp=8, pp=8, dp=24, m=8), row(GPT3, tp=8, dp=64, sp=True),
        row(dict(LLAMA_70B, layers=8), tp=8, pp=4, dp=32, m=4, zero=1)]

GPT_1B = dict(GPT, layers=24, hidden=2048, heads=16, kv=16, ffn=8192, seq=2048, vocab=51200)
LLAMA_7B = dict(LLAMA, layers=32, hidden=4096, heads=32, kv=32, ffn=11008, seq=4096, vocab=32768)
# In //tests:long.
LARGER = [row(model, **division) for model in (GPT2, GPT_1B, LLAMA_7B) for division in (
    dict(dp=8, mbs=2), dict(dp=8, zero=1, mbs=2), dict(dp=4, zero=2, m=4), dict(tp=4, sp=True, mbs=2), dict(tp=2, dp=4, sp=True, m=4),
    dict(tp=2, dp=2, zero=1, m=4), dict(tp=4, recompute="full", mbs=4), dict(dp=4, recompute="full", m=2, zero=1),
    dict(pp=4, m=8), dict(pp=2, dp=4, tp=2, m=8, zero=1), dict(pp=4, vpp=2, m=8, tp=2), dict(tp=4, dp=2, precision="f32"))] + [
        row(GPT3, tp=8, pp=16, dp=2, m=32), row(LLAMA_70B, tp=8, pp=8, dp=4, m=16),
        row(LLAMA_70B, tp=8, dp=8, sp=True, recompute="full")]


def configure(model, folder):
    config = {"vocab_size": model["vocab"], "tie_word_embeddings": model["tied"]}
    if model["family"] == "GPT":
        config.update(model_type="gpt2", architectures=["GPT2LMHeadModel"], n_positions=model["seq"], n_embd=model["hidden"],
                      n_layer=model["layers"], n_head=model["heads"], n_inner=model["ffn"])
    else:
        config.update(model_type="llama", architectures=["LlamaForCausalLM"], max_position_embeddings=model["seq"],
                      hidden_size=model["hidden"], num_hidden_layers=model["layers"], num_attention_heads=model["heads"],
                      num_key_value_heads=model["kv"], intermediate_size=model["ffn"], rms_norm_eps=1e-5, hidden_act="silu")
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def name_of(one):
    model = "%s %dx%d, %d kv heads" % tuple(one["model"][key] for key in ("family", "layers", "hidden", "kv"))
    return model + "".join(" %s=%s" % (key, value) for key, value in one.items() if key != "model")


def plan_of(one):
    """A pipeline's, whose stages have as many layers each, the first ones one more: what a row means. Stages are as far apart as
    they can be, as in what `partita plan` writes."""
    mesh = ", ".join("%s: %d" % (axis, one[key]) for axis, key in (("pipe", "pp"), ("data", "dp"), ("tensor", "tp")) if one[key] > 1)
    entries = ["{%sD: pipe}" % ("B: data, " if one["dp"] > 1 else "")]
    if one["tp"] > 1:
        entries += ["{M: tensor, N: tensor, V: tensor}"] + (["{L: tensor}"] if one["sp"] else [])
    layers, stages = one["model"]["layers"], one["pp"] * one["vpp"]
    ends = [layers // stages * (stage + 1) + min(stage + 1, layers % stages) - 1 for stage in range(stages)]
    name = "transformer.h.%d" if one["model"]["family"] == "GPT" else "model.layers.%d"
    return "\n".join([
        "mesh: {%s}" % mesh, "shard: [%s]" % ", ".join(entries), "zero: %d" % one["zero"], "microbatches: %d" % one["m"],
        "schedule: " + ("1f1b" if one["vpp"] == 1 else "interleaved(%d)" % one["vpp"]),
        "stages: [%s]" % ", ".join('{to: "%s"}' % (name % end) for end in ends), "precision: " + one["precision"],
        "" if one["recompute"] == "none" else "recompute: " + one["recompute"], ""])


def options_of(one, plan):
    sizes = ["--dim", "batch=%d,seq=%d" % (one["dp"] * one["m"] * one["mbs"], one["model"]["seq"])]
    if one["pp"] > 1:
        return sizes + ["--plan", plan]
    mesh = [(axis, one[key]) for axis, key in (("data", "dp"), ("tensor", "tp")) if one[key] > 1]
    entries = ["B=data"] if one["dp"] > 1 else []
    if one["tp"] > 1:
        entries += ["M=tensor,N=tensor,V=tensor"] + (["L=tensor"] if one["sp"] else [])
    options = ["--mesh", ",".join("%s=%d" % axis for axis in mesh), "--shard", ";".join(entries), "--precision", one["precision"]] + sizes
    if one["zero"]:
        options += ["--zero", str(one["zero"])]
    if one["m"] > 1 and one["pp"] == 1:
        options += ["--microbatches", str(one["m"])]
    return options + (["--recompute", one["recompute"]] if one["recompute"] != "none" else [])


class Routes:
    """Tests of the rows of a subclass."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        path = os.path.join(cls.folder, "rows.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow("model_family,layers,hidden,heads,kv_heads,ffn,seq_len,vocab,untie,n_gpus,tp,dp,pp,vpp,sp,recompute,"
                            "zero_stage,mbs,gbs,precision,gpu".split(","))
            for one in cls.rows:
                model = one["model"]
                writer.writerow([model[key] for key in ("family", "layers", "hidden", "heads", "kv", "ffn", "seq", "vocab")] + [
                    "n" if model["tied"] else "y", one["tp"] * one["dp"] * one["pp"], one["tp"], one["dp"], one["pp"], one["vpp"],
                    "y" if one["sp"] else "n", one["recompute"], one["zero"], one["mbs"], one["dp"] * one["m"] * one["mbs"],
                    one["precision"], "A100-80GB-SXM"])
        predicted = os.path.join(cls.folder, "predicted.csv")
        subprocess.run([PARTITA, "simulate", "--sweep", path, "-o", predicted], check=True, capture_output=True)
        with open(predicted, encoding="utf-8", newline="") as file:
            cls.predicted = list(csv.DictReader(file))
        cls.facts = {}

    def compile(self, one):
        """The artifact's facts, as simulated."""
        key = json.dumps(one)
        if key not in self.facts:
            self.facts[key] = self.simulate(one)
        return self.facts[key]

    def simulate(self, one):
        configure(one["model"], self.folder)
        plan = os.path.join(self.folder, "plan.yaml")
        with open(plan, "w", encoding="utf-8") as file:
            file.write(plan_of(one))
        artifact = os.path.join(self.folder, "m.partita")
        done = subprocess.run([PARTITA, "compile", self.folder, "--train", "adamw", "--target", "cuda:sm_80", "-o", artifact,
                               "--json"] + options_of(one, plan), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        gaps = json.loads(done.stdout)["memory"]["gaps"] if one["pp"] > 1 else 0
        devices = one["tp"] * one["dp"] * one["pp"]
        done = subprocess.run([PARTITA, "simulate", artifact, "--cluster", "%dx a100-80-sxm" % devices, "--json"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(json.loads(done.stdout), gaps=gaps)

    def test_the_same_is_sent(self):
        for one, predicted in zip(self.rows, self.predicted):
            with self.subTest(name_of(one)):
                self.assertEqual(predicted["predicted_problem"], "")
                self.compare(self.compile(one)["traffic"], predicted["predicted_traffic"])

    def compare_numbers(self, what, of_row, of_program):
        """Each row's within the limit; prints the differences of each model."""
        differences = collections.defaultdict(list)
        for one, predicted in zip(self.rows, self.predicted):
            with self.subTest(name_of(one)):
                found, expected = of_row(predicted), of_program(self.compile(one))
                differences[name_of(one).split(" tp")[0]].append(abs(found / expected - 1))
                self.assertAlmostEqual(found / expected, 1, delta=LIMIT,
                                       msg="%s: %s of the row, %s of the program" % (what, found, expected))
        for model, values in differences.items():
            print("%s, %s: %d rows differ by %.2f %% at most, %.2f %% in the median" % (
                what, model, len(values), 100 * max(values), 100 * statistics.median(values)))

    def test_memory_is_the_same(self):
        """Of pipelines, what is there at once, without the gaps between buffers that come and go by the schedule. Rows do not
        know what the runtime reserves besides: libraries' scratch, slots of transfers, the next step's inputs."""
        self.compare_numbers("bytes", lambda row: float(row["predicted_mem_GB"]) * 1e9,
                             lambda program: max(rank["memory_bytes"] - rank["reserved_bytes"] for rank in program["ranks"])
                             - program["gaps"])

    def test_time_is_the_same(self):
        self.compare_numbers("seconds", lambda row: float(row["predicted_iter_time_s"]), lambda program: program["step_seconds"])

    def compare(self, program, text):
        expected, found = collections.Counter(), collections.Counter()
        calls, buckets = {}, set()
        for each in text.split("; "):
            what, count, size = each.rsplit(": ", 1)[0], *each.rsplit(": ", 1)[1].split(" x ")
            expected[what] += float(count.split()[0]) * float(size)
            if "buckets" in count:
                buckets.add(what)
            else:
                calls[what, float(size)] = calls.get((what, float(size)), 0) + float(count)
        counted = collections.Counter()
        for each in program:
            what = each["kind"] + (" over " + each["axes"] if each["axes"] else "")
            if each["bytes"] > 16:  # scalars
                found[what] += each["bytes"] * each["calls"]
                counted[what, each["bytes"]] += each["calls"]
        self.assertEqual(set(found), set(expected))
        for what, size in expected.items():
            self.assertAlmostEqual(found[what] / size, 1, delta=1e-9, msg="%s: %s of the program, %s of the row" % (what, found[what], size))
        for (what, size), count in calls.items():
            if what not in buckets:
                self.assertAlmostEqual(counted[what, size], count, delta=1e-6, msg="%s, %s bytes" % (what, size))


class TwoRoutesTest(Routes, unittest.TestCase):
    rows = ROWS


class LargerTwoRoutesTest(Routes, unittest.TestCase):
    rows = LARGER


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
