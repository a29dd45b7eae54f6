"""Compares Partita's tokenizers with the tokenizers wheel: trains one of every kind, and encodes and decodes 10,000 strings with both.

Usage: tokenizers_test.py [SETUP] ENCODE_LINES TEXT. SETUP is tests/peers/setup.sh, which makes the environment; the test then runs there.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

if len(sys.argv) == 4:
    os.environ.setdefault("HOME", os.path.expanduser("~"))  # Bazel hides it
    PYTHON = subprocess.run(["bash", sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__), *sys.argv[2:]])

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

STRINGS = 10000
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIMENS = ["naïve café Übermaß ﬁne", "你好，世界！今天天气很好。", "Привет, мир!", "مرحبا بالعالم", "def f(x):\n\treturn x**2  # done",
             "🙂👍🏽 👨‍👩‍👧‍👦 🇩🇪"]
BITS = ["  ", " ", "\t", "\n", "\r\n", "\n\n", "🙂", "👨‍👩‍👧‍👦", "🇩🇪", "é", "e\u0301", "ﬁ", "İ", "ß", "don't", "I'LL", "it's", "123", "4567890", "x_y",
        "foo(bar)", "==", "//", "<s>", "</s>", "<|endoftext|>", "<|im_start|>", "[CLS]", "<extra_id_0>", "ABASEMENT", " naïve ", "▁", "\u200d",
        "\ufeff", "\u00a0", "\u3000", "١٢٣", "½", "ⅷ", "한국어", "日本語", "العربية", "हिन्दी", "ไทย", "Ω", "…", "—", "“q”", "\x0b", "\x85", "\u2028",
        "the", "a", "b", ".", "!"]
BLOCKS = [(32, 127), (0x80, 0x250), (0x370, 0x600), (0x300, 0x370), (0x2000, 0x2070), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0x1F300, 0x1F650), (0xFE00, 0xFF60), (0x20000, 0x2A6D0), (0, 32), (0x1D400, 0x1D7FF), (0x900, 0xD80)]


def train(model, trainer, corpus, **parts):
    tokenizer = Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def byte_level(corpus):
    gpt2 = train(models.BPE(),
                 trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                 corpus, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel(),
                 post_processor=processors.ByteLevel(trim_offsets=False))
    yield "gpt2", gpt2
    llama3 = train(models.BPE(ignore_merges=True),
                   trainers.BpeTrainer(vocab_size=1500, special_tokens=["<|begin|>", "<|end|>"],
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), corpus,
                   pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                                          pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                   decoder=decoders.ByteLevel())
    llama3.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing("<|begin|> $A", special_tokens=[("<|begin|>", 0)])])
    yield "llama3", llama3
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        split = Tokenizer.from_str(gpt2.to_str())
        split.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(r"[aeiou .]"), behavior, invert=behavior == "contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
        split.add_special_tokens(["<|im_start|>", "<|im|>"])
        yield "split_" + behavior, split
    for name, pattern in (("before_e", Regex("(?=e)")), ("lines", Regex(r"^|\s*$")), ("everywhere", "")):
        empty = Tokenizer.from_str(gpt2.to_str())
        empty.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        yield "empty_matches_" + name, empty


def other_bpe(corpus, lines):
    byte_tokens = [f"<0x{i:02X}>" for i in range(256)]
    llama2 = train(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                   trainers.BpeTrainer(vocab_size=1500, special_tokens=["<unk>", "<s>", "</s>"] + byte_tokens, max_token_length=12),
                   [line[:200] for line in lines],
                   normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
                   decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]))
    llama2.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    facts = json.loads(llama2.to_str())
    facts["added_tokens"] = facts["added_tokens"][:3]  # bytes are tokens of the model alone
    yield "llama2", Tokenizer.from_str(json.dumps(facts))
    yield "clip", train(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
                        trainers.BpeTrainer(vocab_size=900, special_tokens=["[UNK]"], end_of_word_suffix="</w>"), corpus,
                        normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]),
                        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]),
                        decoder=decoders.BPEDecoder())


def word_pieces(corpus):
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    bert = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=1000, special_tokens=special), corpus,
                 normalizer=normalizers.BertNormalizer(lowercase=True), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
                 decoder=decoders.WordPiece())
    bert.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)])
    yield "bert", bert
    cased = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=1000, special_tokens=special), corpus,
                  normalizer=normalizers.BertNormalizer(lowercase=False, strip_accents=True, handle_chinese_chars=False),
                  pre_tokenizer=pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece(cleanup=False))
    cased.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    yield "bert_cased", cased


def unigrams(corpus):
    for name, scheme in (("t5", "always"), ("gemma", "first"), ("xlnet", "never")):
        steps = [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        if name == "xlnet":
            steps = [normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()]
        tokenizer = train(models.Unigram(),
                          trainers.UnigramTrainer(vocab_size=900, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
                                                  shrinking_factor=0.5, max_piece_length=10), corpus,
                          normalizer=normalizers.Sequence(steps), pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme),
                          decoder=decoders.Metaspace(prepend_scheme=scheme))
        tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
        tokenizer.add_tokens([AddedToken("<extra_id_0>", lstrip=True, special=True, normalized=False),
                              AddedToken("ABASEMENT", single_word=True, normalized=True), AddedToken(" naïve ", rstrip=True)])
        yield name, tokenizer
    vocabulary = [(f"<0x{i:02X}>", -20.0) for i in range(256)]
    vocabulary += [("<unk>", 0.0), ("▁", -3.0), ("a", -2.5), ("b", -4.0), ("▁a", -3.5), ("the", -3.0)]
    fallback = Tokenizer(models.Unigram(vocabulary, 256, True))
    fallback.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Metaspace(split=False)])
    fallback.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    yield "unigram_bytes", fallback


def make_strings(text, lines):
    rng = random.Random(7)
    words = text.split(" ")

    def character():
        return chr(rng.randrange(*rng.choice(BLOCKS)))

    strings = ["", " ", "  ", "\n", "Hello, world!"]
    while len(strings) < STRINGS:
        kind = rng.random()
        if kind < .35:
            strings.append(rng.choice(lines)[:120])
        elif kind < .6:
            strings.append("".join(rng.choice(BITS) for _ in range(rng.randrange(1, 12))))
        elif kind < .8:
            strings.append("".join(character() for _ in range(rng.randrange(1, 20))))
        else:
            strings.append("".join(rng.choice([rng.choice(BITS), character(), " ", rng.choice(words)]) for _ in range(rng.randrange(1, 25))))
    return strings


def compare(encode_lines, name, tokenizer, strings):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "tokenizer.json")
        tokenizer.save(path)
        given = "".join(json.dumps(string) + "\n" for string in strings)
        done = subprocess.run([encode_lines, path], input=given, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert len(rows) == len(strings), (name, len(rows))
    for string, row in zip(strings, rows):
        expected = tokenizer.encode(string).ids
        assert row["ids"] == expected, (name, string, expected, row)
        assert row["text"] == tokenizer.decode(expected), (name, string, tokenizer.decode(expected), row)
    print(f"{name}: {len(rows)} strings are equal")


def main():
    encode_lines, path = sys.argv[1:]
    text = pathlib.Path(path).read_text(encoding="utf8", errors="replace")
    lines = text.splitlines()
    corpus = lines + SPECIMENS * 50
    strings = make_strings(text, lines)
    for made in (byte_level(corpus), other_bpe(corpus, lines), word_pieces(corpus), unigrams(corpus)):
        for name, tokenizer in made:
            compare(encode_lines, name, tokenizer, strings)


if __name__ == "__main__":
    main()
