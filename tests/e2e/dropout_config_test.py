"""Dropout from Hugging Face configs: only in training, the same under every plan, different with another seed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 8, "n_embd": 32, "n_layer": 2,
        "n_head": 4}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
RATES = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.1}
# So small that nothing is dropped, but attention takes the code path for dropout.
TINY_DROPOUT = "1e-9"


class DropoutConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("tokens.bin"), "wb") as file:
            file.write(bytes(b for i in range(600) for b in (i * i % 61, 0)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, config, *options):
        os.makedirs(self.path("model"), exist_ok=True)
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return subprocess.run([PARTITA, "compile", self.path("model"), "--dim", "batch=4,seq=8", "-o", self.path("m.partita"), *options],
                              capture_output=True, text=True, timeout=300)

    def losses(self, config, *options, seed=0):
        compiled = self.compile(config, "--train", "adamw", *options)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        run = subprocess.run([PARTITA_RUN, "train", self.path("m.partita"), "--data", self.path("tokens.bin"), "--no-shuffle", "--steps",
                              "3", "--lr", "0.01", "--seed", str(seed), "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["losses"]

    def assert_close(self, a, b):
        for x, y in zip(a, b, strict=True):
            self.assertAlmostEqual(x, y, delta=1e-5 * abs(y))

    def test_the_same_under_every_plan(self):
        whole = self.losses({**GPT2, **RATES})
        self.assertEqual(whole, self.losses({**GPT2, **RATES}))
        self.assertNotEqual(whole, self.losses({**GPT2, **RATES}, seed=1))
        self.assertNotEqual(whole, self.losses(GPT2))
        for plan in (("--mesh", "d=2", "--shard", "B=d"), ("--mesh", "t=2", "--shard", "M=t,N=t")):
            with self.subTest(plan=plan):
                self.assert_close(self.losses({**GPT2, **RATES}, *plan), whole)

    def test_the_option_outranks_the_config(self):
        without = self.losses(GPT2)
        self.assertEqual(self.losses({**GPT2, **RATES}, "--dropout", "0"), without)
        self.assertNotEqual(self.losses(GPT2, "--dropout", "0.1"), without)

    def test_attention_by_scores_is_attention(self):
        for config in (GPT2, LLAMA):
            with self.subTest(model=config["model_type"]):
                self.assert_close(self.losses(config, "--dropout", TINY_DROPOUT), self.losses(config))

    def test_inference_drops_nothing(self):
        self.assertEqual(self.compile({**GPT2, **RATES}).returncode, 0)
        inspected = subprocess.run([PARTITA, "inspect", self.path("m.partita"), "--json"], check=True, capture_output=True, timeout=60)
        self.assertEqual([port["name"] for port in json.loads(inspected.stdout)["inputs"]], ["input_ids"])

    def test_refusals(self):
        for config, options, said in (({**GPT2, "attn_pdrop": 1}, ("--train", "adamw"), "'attn_pdrop': expected a probability from 0 to below 1"),
                                      (GPT2, ("--dropout", "0.1"), "--dropout: expected a model that is trained (--train)")):
            refused = self.compile(config, *options)
            self.assertEqual(refused.returncode, 1, refused.stderr)
            self.assertIn(said, refused.stderr)
        wrong = self.compile(GPT2, "--train", "adamw", "--dropout", "1")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("expected a probability from 0 to below 1, found 1", wrong.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
