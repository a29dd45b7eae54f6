"""Models that generate text."""

import ctypes
import operator
import os
import threading

from . import errors, native
from .native import check, lib
from .session import open_options


class Generator:
    """A model that generates text: a folder that `partita generate -o` or `partita.generator` made.

        generator = partita.Generator("gpt2.generate")
        tokens = generator([[464, 5417], [1212]], max_new_tokens=40)   # token ids
        text = generator("The sea", temperature=0.8, top_k=50)         # needs the wheel tokenizers

    rows: texts at a time; further ones wait for a free row. length: most tokens of a text, the prompt included. vocabulary: tokens are
    below it. end: tokens that end a text. tokenizer_path: the model's tokenizer.json, or None.
    Calls from several threads wait for one another. device, threads, weights_dir, timeout: as for Session.
    """

    def __init__(self, path, *, device=None, threads=0, weights_dir=None, timeout=60.0):
        self.path = os.fspath(path)
        self._handle, self._lock, self._process = ctypes.c_void_p(), threading.Lock(), os.getpid()
        self._tokenizer = None
        options = open_options(device, threads, weights_dir, False, timeout, 0)
        check(lib.partita_open_generator(os.fsencode(self.path), ctypes.byref(options), ctypes.byref(self._handle)))
        info = native.GeneratorInfo()
        check(lib.partita_describe_generator(self._handle, ctypes.byref(info)))
        self.rows, self.length, self.vocabulary = info.rows, info.length, info.vocabulary
        self.end = tuple(info.end.list())
        self.tokenizer_path = os.fsdecode(info.tokenizer) if info.tokenizer else None
        self.times = None

    @property
    def tokenizer(self):
        """The model's tokenizer, a tokenizers.Tokenizer."""
        if self._tokenizer is None:
            if self.tokenizer_path is None:
                raise errors.InvalidError("%s: expected the model's tokenizer.json for texts, found none; give token ids, or compile a model "
                                          "folder that has the file" % self.path)
            try:
                import tokenizers  # pylint: disable=import-outside-toplevel
            except ImportError as problem:
                raise errors.MissingError("expected the package tokenizers for texts, found none; pip install tokenizers, or give token "
                                          "ids") from problem
            self._tokenizer = tokenizers.Tokenizer.from_file(self.tokenizer_path)
            # The file's settings for training would cut and fill prompts.
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
        return self._tokenizer

    def __call__(self, prompts, *, max_new_tokens=20, temperature=None, top_k=0, top_p=1.0, repetition_penalty=1.0, seed=0, stop=(),
                 ignore_end=False, on_token=None):
        """Goes on from one prompt or a list of them. Returns what was added: the text of a text, the token ids of token ids.

        temperature: 0 takes the best token; None: 0, or 1 with top_k or top_p. stop: strings that end a text before them.
        on_token: called with the number of the text and its new tokens after each of them; returning True ends the text.
        `times` then has first_token_seconds, prompt_seconds and token_seconds.
        """
        single = isinstance(prompts, str) or (len(prompts) > 0 and _is_token(prompts[0]))
        prompts = [prompts] if single else list(prompts)
        stop = [stop] if isinstance(stop, str) else list(stop)
        if not all(isinstance(word, str) and word for word in stop):
            raise errors.InvalidError("expected stop strings of at least one character, found %r" % (stop,))
        max_new_tokens, top_k = _integer(max_new_tokens, "max_new_tokens"), _integer(top_k, "top_k")
        seed = _integer(seed, "seed", low=0, high=2**64 - 1)
        if temperature == 0 and (top_k or top_p < 1):
            raise errors.InvalidError("expected a temperature above 0 with top_k or top_p, found 0, which takes the best token")
        ids = [self.tokenizer.encode(prompt).ids if isinstance(prompt, str) else [_integer(token, "a token id") for token in prompt]
               for prompt in prompts]

        def added(text, tokens):
            before = self.tokenizer.decode(ids[text])
            whole = self.tokenizer.decode(ids[text] + tokens)
            new = whole[len(before):] if whole.startswith(before) else self.tokenizer.decode(tokens)
            places = [new.find(word) for word in stop]
            return new, min((place for place in places if place >= 0), default=None)

        failure = []

        def follow(text, tokens, _):
            try:
                new = tokens.list()
                ends = bool(on_token and on_token(text, new))
                return int(ends or (bool(stop) and added(text, new)[1] is not None))
            except BaseException as problem:  # pylint: disable=broad-except
                failure.append(problem)  # not through C++
                return 1

        callback = native.TOKEN_CALLBACK(follow) if on_token or stop else native.TOKEN_CALLBACK()
        if temperature is None:
            temperature = 1.0 if top_k or top_p < 1 else 0.0
        options = native.GenerateOptions(native.ABI_VERSION, ctypes.sizeof(native.GenerateOptions), max_new_tokens, repetition_penalty,
                                         temperature, top_k, top_p, seed, native.Tokens.of(() if ignore_end else self.end), callback, None)
        tokens = self._generate(ids, options)
        if failure:
            raise failure[0]
        results = []
        for i, prompt in enumerate(prompts):
            if isinstance(prompt, str):
                text, place = added(i, tokens[i])
                results.append(text[:place])
            else:
                results.append(tokens[i])
        return results[0] if single else results

    def _generate(self, ids, options):
        given = (native.Tokens * len(ids))(*[native.Tokens.of(tokens) for tokens in ids])
        texts, times = (native.Tokens * len(ids))(), native.GenerateTimes()
        with self._lock:
            if not self._handle or os.getpid() != self._process:
                raise errors.InvalidError("%s: expected an open generator of this process, found one that is closed or of another process"
                                          % self.path)
            check(lib.partita_generate(self._handle, given, len(ids), ctypes.byref(options), texts, ctypes.byref(times)))
            self.times = {name: getattr(times, name) for name, _ in times._fields_}
            return [text.list() for text in texts]

    def close(self):
        """Releases all memory."""
        if os.getpid() != self._process:
            self._handle = ctypes.c_void_p()
            return
        with self._lock:
            if self._handle:
                lib.partita_close_generator(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def __repr__(self):
        return "<partita.Generator %s: %d row%s of %d tokens%s>" % (self.path, self.rows, "" if self.rows == 1 else "s", self.length,
                                                                    "" if self._handle else ", closed")


def _integer(value, what, low=-2**63, high=2**63 - 1):
    """An integer of any library in these bounds, as ctypes takes it modulo its size."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise errors.InvalidError("expected %s to be an integer from %d to %d, found %r" % (what, low, high, value))
    return number


def _is_token(value):
    return not isinstance(value, str) and not hasattr(value, "__len__")
