"""Generates tokens from Python: those of transformers (tests/data/generating), in one row and in many, and what is refused."""

import json
import os
import tempfile
import unittest

from checkout import numpy

import partita

MODEL = os.path.abspath("tests/data/generating/gpt2")
NEW_TOKENS = 24


class GeneratorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(MODEL, "generated.json"), encoding="utf8") as file:
            facts = json.load(file)
        cls.prompts, cls.tokens, cls.penalty, cls.penalized = facts["prompts"], facts["tokens"], facts["penalty"], facts["penalized"]
        cls.generator = partita.generator(MODEL, rows=3, cache_length=64)

    def test_tokens_equal_those_of_transformers(self):
        self.assertEqual(self.generator(self.prompts, max_new_tokens=NEW_TOKENS), self.tokens)
        self.assertEqual(self.generator(self.prompts, max_new_tokens=NEW_TOKENS, repetition_penalty=self.penalty), self.penalized)
        self.assertEqual(self.generator(self.prompts[1], max_new_tokens=NEW_TOKENS), self.tokens[1])
        self.assertGreater(self.generator.times["token_seconds"], 0)

    def test_properties(self):
        self.assertEqual((self.generator.rows, self.generator.length, self.generator.vocabulary), (3, 64, 96))
        self.assertIsNone(self.generator.tokenizer_path)
        self.assertIn("3 rows of 64 tokens", repr(self.generator))

    def test_a_callback_sees_and_ends_texts(self):
        seen = []

        def follow(text, tokens):
            seen.append((text, list(tokens)))
            return len(tokens) == 5

        found = self.generator(self.prompts[:2], max_new_tokens=NEW_TOKENS, on_token=follow)
        self.assertEqual(found, [tokens[:5] for tokens in self.tokens[:2]])
        self.assertIn((1, self.tokens[1][:3]), seen)

        def fail(*_):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.generator(self.prompts[0], on_token=fail)
        self.assertEqual(self.generator(self.prompts[0], max_new_tokens=2), self.tokens[0][:2])

    def test_draws_depend_on_the_seed(self):
        draw = {"max_new_tokens": 12, "temperature": 1.5, "top_k": 20}
        first = self.generator(self.prompts, seed=3, **draw)
        self.assertEqual(first, self.generator(self.prompts, seed=3, **draw))
        self.assertNotEqual(first, self.generator(self.prompts, seed=4, **draw))

    def test_divided_and_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            made = partita.generator(MODEL, cache_length=64, mesh={"tensor": 2}, shard="N=tensor,V=tensor", output=folder)
            self.assertEqual(made(self.prompts[0], max_new_tokens=NEW_TOKENS), self.tokens[0])
            made.close()
            with partita.Generator(folder, threads=1) as again:
                self.assertEqual(again(self.prompts[0], max_new_tokens=NEW_TOKENS), self.tokens[0])
        self.assertEqual(partita.generate(MODEL, self.prompts[0], compiling={"cache_length": 64}, max_new_tokens=3), self.tokens[0][:3])

    def test_a_cache_of_8_bits(self):
        sizes = {}
        for cache in ("f32", "int8"):
            with tempfile.TemporaryDirectory() as folder:
                with partita.generator(MODEL, cache_length=64, cache=cache, output=os.path.join(folder, "model")) as made:
                    sizes[cache] = partita.inspect(os.path.join(folder, "model", "tokens.partita")).facts["compiled"]["memory"]["optimizer_states"]
                    tokens = made(self.prompts[0], max_new_tokens=4)
            self.assertEqual(partita.generate(MODEL, self.prompts[0], cache=cache, compiling={"cache_length": 64}, max_new_tokens=4), tokens)
        # A byte for each number, and a scale for each head and token, which has 8 numbers: 1/4 + 1/8.
        self.assertEqual(sizes["int8"], 0.375 * sizes["f32"])
        with self.assertRaisesRegex(partita.UsageError, "int4"):
            partita.generator(MODEL, cache="int4")
        with self.assertRaisesRegex(partita.UsageError, "expected cache once"):
            partita.generate(MODEL, [1], cache="int8", compiling={"cache": "f32"})

    def test_refusals(self):
        with self.assertRaisesRegex(partita.InvalidError, "expected tokens from 0 to 95, as the model's vocabulary has, found 96"):
            self.generator([96])
        with self.assertRaisesRegex(partita.InvalidError, "expected a prompt and new tokens that fit a cache of 64 tokens, found 60 and 20"):
            self.generator([1] * 60)
        with self.assertRaisesRegex(partita.InvalidError, "expected max_new_tokens, temperature and top_k of 0 or more"):
            self.generator([1], top_p=2.0)
        with self.assertRaisesRegex(partita.InvalidError, "expected the model's tokenizer.json for texts, found none"):
            self.generator("text")
        with self.assertRaisesRegex(partita.MissingError, "absent"):
            partita.Generator("absent")
        with self.assertRaisesRegex(partita.CompileError, "at most 64"):
            partita.generator(MODEL, cache_length=65)
        with self.assertRaisesRegex(partita.UsageError, "no-such-option"):
            partita.generator(MODEL, no_such_option=1)
        for option in ("max_new_tokens", "prompt"):
            with self.assertRaisesRegex(partita.UsageError, "expected options of the compilation, found " + option):
                partita.generator(MODEL, **{option: 3})
        closed = partita.generator(MODEL, cache_length=64)
        closed.close()
        with self.assertRaisesRegex(partita.InvalidError, "closed"):
            closed([1])

    def test_numbers_are_not_rounded_or_wrapped(self):
        for wrong in (2**70, 1.5, "1", None):
            with self.assertRaisesRegex(partita.InvalidError, "expected a token id to be an integer"):
                self.generator([[wrong]])
        for wrong in (2**64 + 3, 3.0):
            with self.assertRaisesRegex(partita.InvalidError, "expected max_new_tokens to be an integer"):
                self.generator([1], max_new_tokens=wrong)
        with self.assertRaisesRegex(partita.InvalidError, "expected seed to be an integer from 0 to"):
            self.generator([1], seed=-1)
        with self.assertRaisesRegex(partita.InvalidError, "fit a cache of 64 tokens"):
            self.generator([1, 2, 3], max_new_tokens=2**63 - 1)
        self.assertEqual(self.generator([numpy.int32(token) for token in self.prompts[0]], max_new_tokens=numpy.int64(2)), self.tokens[0][:2])

    def test_contradictions_are_refused(self):
        with self.assertRaisesRegex(partita.InvalidError, "expected stop strings of at least one character"):
            self.generator([1], stop="")
        with self.assertRaisesRegex(partita.InvalidError, "expected a temperature above 0 with top_k or top_p"):
            self.generator([1], temperature=0, top_p=0.5)


if __name__ == "__main__":
    unittest.main()
