"""partita generate: tiny models generate the tokens that transformers generates (tests/data/generating), for one prompt and for many, on one
device and on several; and what is wrong is refused."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
MODELS = os.path.abspath("tests/data/generating")
NEW_TOKENS = 24
# Divisions by heads and vocabulary, and of the cache by its length.
DIVISIONS = (("tensor=2", "N=tensor,M=tensor,V=tensor"), ("tensor=4", "N=tensor,V=tensor"), ("tensor=2", "L=tensor"))


def run(*arguments):
    return subprocess.run([PARTITA, "generate", *arguments], capture_output=True, text=True, check=False)


def ids(prompts):
    words = []
    for prompt in prompts:
        words += ["--ids", ",".join(map(str, prompt))]
    return words


class GenerateTest(unittest.TestCase):
    def generate(self, *arguments):
        done = run(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def compiled(self, name, *options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        done = run(os.path.join(MODELS, name), "--cache-length", "64", "-o", folder.name, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return folder.name

    def facts(self, name):
        with open(os.path.join(MODELS, name, "generated.json"), encoding="utf8") as file:
            return json.load(file)

    def check(self, name):
        facts = self.facts(name)
        for rows in (1, 3):
            model = self.compiled(name, "--rows", str(rows))
            new = ["--max-new-tokens", str(NEW_TOKENS)]
            self.assertEqual(self.generate(model, *ids(facts["prompts"]), *new)["tokens"], facts["tokens"], rows)
            penalized = self.generate(model, *ids(facts["prompts"]), *new, "--repetition-penalty", str(facts["penalty"]))
            self.assertEqual(penalized["tokens"], facts["penalized"], rows)

    def words_tokenizer(self, folder, tokens):
        """Adds a tokenizer of the words t0, t1 ... to a compiled model; returns its path."""
        with open(os.path.join(folder, "generation.json"), encoding="utf8") as file:
            facts = json.load(file)
        facts["tokenizer"] = "tokenizer.json"
        with open(os.path.join(folder, "generation.json"), "w", encoding="utf8") as file:
            json.dump(facts, file)
        path = os.path.join(folder, "tokenizer.json")
        model = {"type": "WordLevel", "vocab": {f"t{i}": i for i in range(tokens)}, "unk_token": "t0"}
        with open(path, "w", encoding="utf8") as file:
            json.dump({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}, file)
        return path

    def test_gpt2(self):
        self.check("gpt2")

    def test_llama(self):
        self.check("llama")

    def test_mistral(self):
        self.check("mistral")

    def test_qwen3(self):
        self.check("qwen3")

    def test_mixtral(self):
        self.check("mixtral")

    def test_t5(self):
        self.check("t5")

    def test_divided_models_generate_the_same(self):
        # The others have two key-value heads, or a cache of the prompt too.
        divisions = {"gpt2": DIVISIONS, "llama": (DIVISIONS[0], DIVISIONS[2]), "mixtral": DIVISIONS[:1], "t5": DIVISIONS[:1]}
        for name, own in divisions.items():
            facts = self.facts(name)
            for mesh, shard in own:
                with self.subTest(name=name, mesh=mesh, shard=shard):
                    model = self.compiled(name, "--rows", "2", "--mesh", mesh, "--shard", shard)
                    found = self.generate(model, *ids(facts["prompts"]), "--max-new-tokens", str(NEW_TOKENS))
                    self.assertEqual(found["tokens"], facts["tokens"])

    def test_a_cache_of_integers(self):
        # Integers change scores a little, and these models prefer their best token by little. So each token follows the expected ones here.
        least = {"gpt2": 1.0, "llama": 0.98, "mixtral": 0.95}
        for name, share in least.items():
            facts = self.facts(name)
            prompts, expected = [], []
            for prompt, tokens in zip(facts["prompts"], facts["tokens"]):
                for i in range(len(tokens) - 1):
                    prompts.append(prompt + tokens[:i])
                    expected.append(tokens[i + 1])
            model = self.compiled(name, "--rows", "2", "--cache", "int8")
            # The first token comes from the prompt's own numbers, the second from the cache.
            found = [tokens[1] for tokens in self.generate(model, *ids(prompts), "--max-new-tokens", "2")["tokens"]]
            self.assertGreaterEqual(sum(a == b for a, b in zip(found, expected)), share * len(expected), name)

    def test_divided_caches_of_integers_generate_the_same(self):
        for name, own in {"gpt2": DIVISIONS, "llama": DIVISIONS[:1], "t5": DIVISIONS[:1]}.items():
            new = [*ids(self.facts(name)["prompts"]), "--max-new-tokens", str(NEW_TOKENS)]
            whole = self.generate(self.compiled(name, "--rows", "2", "--cache", "int8"), *new)["tokens"]
            for mesh, shard in own:
                with self.subTest(name=name, mesh=mesh, shard=shard):
                    model = self.compiled(name, "--rows", "2", "--cache", "int8", "--mesh", mesh, "--shard", shard)
                    self.assertEqual(self.generate(model, *new)["tokens"], whole)

    def test_draws_depend_on_the_seed_alone(self):
        prompts = ids(self.facts("gpt2")["prompts"])
        draw = ["--max-new-tokens", "12", "--temperature", "1.5", "--top-k", "20", "--top-p", "0.9", "--seed", "3"]
        one = self.generate(self.compiled("gpt2"), *prompts, *draw)["tokens"]
        many = self.generate(self.compiled("gpt2", "--rows", "4"), *prompts, *draw)["tokens"]
        self.assertEqual(one, many)
        self.assertNotEqual(one, self.generate(self.compiled("gpt2"), *prompts, *draw[:-1], "4")["tokens"])

    def refusal(self, *arguments, code=1):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_refusals(self):
        gpt2 = self.compiled("gpt2")
        self.assertIn("expected a prompt and new tokens that fit a cache of 64 tokens, found 60 and 20",
                      self.refusal(gpt2, "--ids", ",".join(["1"] * 60)))
        self.assertIn("expected tokens from 0 to 95, as the model's vocabulary has, found 96", self.refusal(gpt2, "--ids", "96"))
        self.assertIn("expected the model's tokenizer.json for texts, found none", self.refusal(gpt2, "--prompt", "a"))
        self.assertIn(f"{MODELS}/gpt2: expected a folder with tokenizer.json for texts, found none",
                      self.refusal(MODELS + "/gpt2", "--prompt", "a"))
        self.assertIn("expected token ids with commas between them", self.refusal(gpt2, "--ids", "1,x", code=2))
        self.assertIn("expected a prompt", self.refusal(gpt2, code=2))
        self.assertIn("found no file or folder", self.refusal(MODELS + "/absent", "--ids", "1"))
        self.assertIn("length of the cache: expected at most 64 (n_positions), found 65; --cache-length sets it",
                      self.refusal(MODELS + "/gpt2", "--cache-length", "65", "--ids", "1"))
        path = os.path.join(gpt2, "generation.json")
        with open(path, encoding="utf8") as file:
            facts = json.load(file)
        for field, value, expected in (("length", 1000, "expected 64, as the cache"), ("start", 96, "expected a token below 96")):
            with open(path, "w", encoding="utf8") as file:
                json.dump({**facts, field: value}, file)
            self.assertIn(f"generation.json: '{field}': {expected}", self.refusal(gpt2, "--ids", "1"))
        with open(path, "w", encoding="utf8") as file:
            json.dump(facts, file)
        os.remove(os.path.join(gpt2, "tokens.partita"))
        self.assertIn("tokens.partita", self.refusal(gpt2, "--ids", "1"))
        with open(path, "w", encoding="utf8") as file:
            file.write("{}")
        self.assertIn("generation.json: 'rows': expected a number of at least 1", self.refusal(gpt2, "--ids", "1"))

    def test_options_are_checked_before_compiling(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        output, lines = os.path.join(folder.name, "gpt2.generate"), os.path.join(folder.name, "lines.txt")
        model = os.path.join(MODELS, "gpt2")

        def refused(*words):
            message = self.refusal(model, "-o", output, *words, code=2)
            self.assertFalse(os.path.exists(output), message)
            return message

        self.assertIn("expected a prompt", self.refusal(model, code=2))
        self.assertIn("--cache", refused("--cache", "int4"))
        self.assertIn("--temperature", refused("--temperature", "abc"))
        self.assertIn("expected a --temperature above 0 with --top-k or --top-p, found 0",
                      refused("--ids", "1", "--top-p", "0.5", "--temperature", "0"))
        self.assertIn("expected token ids with commas between them", refused("--ids", "1,x"))
        self.assertIn("lines.txt", refused("--prompts", lines))
        for text, expected in (("", "found no prompt"), ("\n\n", "found no prompt"), ("a\n\nb\n", ":2: expected a prompt on each line")):
            with open(lines, "w", encoding="utf8") as file:
                file.write(text)
            self.assertIn(expected, refused("--prompts", lines))

    def test_prompts_keep_their_order(self):
        gpt2 = self.compiled("gpt2")
        self.words_tokenizer(gpt2, 96)
        lines = os.path.join(gpt2, "lines.txt")
        with open(lines, "w", encoding="utf8") as file:
            file.write("t5 t6\n\n\n")
        alone = [self.generate(gpt2, "--ids", prompt)["tokens"][0] for prompt in ("1,2", "3", "4,4,4", "5,6")]
        mixed = self.generate(gpt2, "--prompt", "t1 t2", "--ids", "3", "--prompt", "t4 t4 t4", "--prompts", lines)
        self.assertEqual(mixed["tokens"], alone)

    def test_standard_output_has_the_texts_alone(self):
        done = run(self.compiled("gpt2"), "--ids", "1", "--max-new-tokens", "3")
        self.assertEqual(len(done.stdout.strip().split(",")), 3, done.stdout)
        self.assertIn("3 new tokens", done.stderr)

    def test_a_compiled_model_takes_no_options_of_the_compilation(self):
        gpt2 = self.compiled("gpt2")
        for words in (("--mesh", "d=2"), ("--rows", "2"), ("--precision", "bf16"), ("--output", gpt2)):
            self.assertIn(f"expected no {words[0]} with a folder that is compiled",
                          self.refusal(gpt2, "--ids", "1", *words, code=2))

    def test_divided_rows_are_refused(self):
        self.assertIn("expected no division of B, found one; rows of the cache are not divided",
                      self.refusal(MODELS + "/gpt2", "--rows", "4", "--mesh", "d=2", "--shard", "B=d", "--ids", "1"))

    def test_a_folder_is_compiled_again(self):
        folder = self.compiled("gpt2")
        self.assertIn("prompts-64.partita", os.listdir(folder))
        done = run(os.path.join(MODELS, "gpt2"), "--cache-length", "32", "-o", folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(os.listdir(folder)), ["generation.json", "prompts-32.partita", "tokens.partita"])

    def test_the_folder_of_the_model_is_not_written(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        model = shutil.copytree(os.path.join(MODELS, "gpt2"), os.path.join(folder.name, "gpt2"))
        self.assertIn("expected a folder other than the model's", self.refusal(model, "-o", model))
        self.assertFalse(os.path.exists(os.path.join(model, "generation.json")))

    def test_a_tokenizer_of_another_model_is_refused(self):
        gpt2 = self.compiled("gpt2")
        path = self.words_tokenizer(gpt2, 97)
        self.assertIn("expected at most 96 tokens, as the model has, found 97; it belongs to another model",
                      self.refusal(gpt2, "--prompt", "t1"))
        self.words_tokenizer(gpt2, 96)
        prompt = self.facts("gpt2")["prompts"][1]
        text = " ".join(f"t{token}" for token in prompt)
        new = ["--max-new-tokens", str(NEW_TOKENS)]
        found = self.generate(gpt2, "--prompt", text, *new)
        expected = self.facts("gpt2")["tokens"][1]
        self.assertEqual(found["tokens"], [expected])
        self.assertEqual(found["texts"][0].split(), [f"t{token}" for token in expected])
        stop = f"t{expected[3]}"
        stopped = self.generate(gpt2, "--prompt", text, *new, "--stop", stop)
        self.assertNotIn(stop, stopped["texts"][0])
        os.remove(path)
        self.assertIn("tokenizer.json", self.refusal(gpt2, "--prompt", "t1"))


if __name__ == "__main__":
    unittest.main()
