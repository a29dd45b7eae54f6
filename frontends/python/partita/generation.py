"""Compiles models that generate text."""

import shutil
import tempfile
import weakref

from partita_runtime import Generator

from . import commands, options

# Options of `partita generate` that a Generator's call has instead.
_OF_CALL = frozenset(("prompt", "prompts", "ids", "max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty", "seed", "stop",
                      "ignore_end", "on_token", "json"))


def generator(model, *, rows=1, cache_length=None, cache=None, mesh=None, shard=None, plan=None, weights=None, output=None, device=None,
              threads=0, **others) -> Generator:
    """Compiles a model that generates text; returns a Generator.

        generator = partita.generator("gpt2/", rows=4)
        texts = generator(["The sea", "A house"], max_new_tokens=40, temperature=0.8, top_k=50)

    model: a Hugging Face folder, or a family's name ("gpt2"). rows: texts at a time. cache_length: most tokens of a text, the prompt
    included; None: 1024, or as many as the model has positions. cache: "f32" (None), or "int8" to keep keys and values as integers of
    8 bits. mesh, shard, plan, weights: as for compile. output: a folder to keep; None: a temporary one, removed with the Generator.
    others: any option of `partita generate --help`.

    Raises CompileError or UsageError with the message of the command line.
    """
    of_call = sorted(_OF_CALL.intersection(others))
    if of_call:
        raise commands.UsageError("expected options of the compilation, found %s: give them to the call of the Generator, as in "
                                  "generator(\"The sea\", max_new_tokens=40)" % ", ".join(of_call))
    temporary = output is None
    folder = tempfile.mkdtemp(prefix="partita-") if temporary else output
    try:
        files = options.Folder()
        words = [model, "-o", folder] + options.words(rows=rows, cache_length=cache_length, cache=cache, weights=weights, **others)
        commands.run("generate", *words, *options.plan_words(plan, mesh, shard, files))
        result = Generator(folder, device=device, threads=threads)
    except BaseException:
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if temporary:
        weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    return result


def generate(model, prompts, *, cache=None, compiling=None, **choices):
    """Goes on from one prompt or a list of them: texts, or lists of token ids. Returns what was added.

        partita.generate("gpt2/", "The sea", max_new_tokens=40)

    cache: as for `generator`. compiling: its other options, as {"rows": 4}. choices: as for Generator's call. To generate often, keep a
    `generator`.
    """
    compiling = dict(compiling or {})
    if cache is not None:
        if "cache" in compiling:
            raise commands.UsageError("expected cache once, found it as an argument and in compiling")
        compiling["cache"] = cache
    with generator(model, **compiling) as made:
        return made(prompts, **choices)
