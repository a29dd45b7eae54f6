"""An architecture's row and the compiled program say the same: what is sent, along which axes, how often.

One route is `partita simulate --sweep` on a row, which compiles nothing; the other one compiles the same model for the
same division and counts in the artifact (`partita simulate --json`).
"""

import collections
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"

GPT = dict(family="GPT", layers=8, hidden=256, heads=8, kv=8, ffn=1024, seq=128, vocab=1024, tied=True)
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
        row(GPT2, tp=2, mbs=4), row(GPT2, tp=4, dp=2, zero=1, m=2), row(GPT2, pp=4, dp=8, m=8), row(GPT2, dp=64, m=4),
        row(dict(GPT3, layers=16), tp=8, pp=8, dp=24, m=8), row(GPT3, tp=8, dp=64, sp=True),
        row(dict(LLAMA_70B, layers=8), tp=8, pp=4, dp=32, m=4, zero=1)]


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
    model = "%s %dx%d" % (one["model"]["family"], one["model"]["layers"], one["model"]["hidden"])
    return model + "".join(" %s=%s" % (key, value) for key, value in one.items() if key != "model")


def options_of(one):
    mesh = [(axis, one[key]) for axis, key in (("data", "dp"), ("pipe", "pp"), ("tensor", "tp")) if one[key] > 1]
    entries = [",".join((["D=pipe"] if one["pp"] > 1 else []) + (["B=data"] if one["dp"] > 1 else []))]
    if one["tp"] > 1:
        entries += ["M=tensor,N=tensor,V=tensor"] + (["L=tensor"] if one["sp"] else [])
    options = ["--mesh", ",".join("%s=%d" % axis for axis in mesh), "--shard", ";".join(entry for entry in entries if entry),
               "--precision", one["precision"], "--dim", "batch=%d,seq=%d" % (one["dp"] * one["m"] * one["mbs"], one["model"]["seq"])]
    if one["zero"]:
        options += ["--zero", str(one["zero"])]
    if one["m"] > 1 or one["pp"] > 1:
        options += ["--microbatches", str(one["m"])]
    if one["pp"] > 1:
        options += ["--schedule", "1f1b" if one["vpp"] == 1 else "interleaved(%d)" % one["vpp"]]
    return options + (["--recompute", one["recompute"]] if one["recompute"] != "none" else [])


class TwoRoutesTest(unittest.TestCase):
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
            for one in ROWS:
                model = one["model"]
                writer.writerow([model[key] for key in ("family", "layers", "hidden", "heads", "kv", "ffn", "seq", "vocab")] + [
                    "n" if model["tied"] else "y", one["tp"] * one["dp"] * one["pp"], one["tp"], one["dp"], one["pp"], one["vpp"],
                    "y" if one["sp"] else "n", one["recompute"], one["zero"], one["mbs"], one["dp"] * one["m"] * one["mbs"],
                    one["precision"], "A100-80GB-SXM"])
        predicted = os.path.join(cls.folder, "predicted.csv")
        subprocess.run([PARTITA, "simulate", "--sweep", path, "-o", predicted], check=True, capture_output=True)
        with open(predicted, encoding="utf-8", newline="") as file:
            cls.predicted = list(csv.DictReader(file))

    def compile(self, one):
        """The artifact's facts, as simulated."""
        configure(one["model"], self.folder)
        artifact = os.path.join(self.folder, "m.partita")
        done = subprocess.run([PARTITA, "compile", self.folder, "--train", "adamw", "--target", "cuda:sm_80", "-o", artifact,
                               "--json"] + options_of(one), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        devices = one["tp"] * one["dp"] * one["pp"]
        done = subprocess.run([PARTITA, "simulate", artifact, "--cluster", "%dx a100-80-sxm" % devices, "--json"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_same_is_sent(self):
        for one, predicted in zip(ROWS, self.predicted):
            with self.subTest(name_of(one)):
                self.assertEqual(predicted["predicted_problem"], "")
                self.compare(self.compile(one)["traffic"], predicted["predicted_traffic"])

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


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
