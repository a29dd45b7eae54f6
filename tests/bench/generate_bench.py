"""Tokens per second of GPT-2 small with a cache: partita generate, transformers and onnxruntime on this machine.

Weights are seeded, as speed does not depend on them. All read the same prompts and add the same number of tokens; the systems take turns,
and the medians of their turns count. Needs an environment from `tests/peers/setup.sh --torch`.
Usage: generate_bench.py PARTITA FOLDER [--threads N] [--batch N] [--turns N] [--cache f32|int8] [--other PARTITA]. FOLDER keeps the models.
--other is another build, which is measured in the same turns.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy
import onnxruntime
import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

PROMPT, NEW_TOKENS = 32, 64


class Step(torch.nn.Module):
    """One token, with the cache as inputs and outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, *past):
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (out.logits[:, -1], *present)


def make_models(folder):
    model = GPT2LMHeadModel(GPT2Config(eos_token_id=None, bos_token_id=None, attn_implementation="eager")).eval()
    path = folder / "gpt2"
    if not (path / "config.json").exists():
        torch.manual_seed(0)
        model.save_pretrained(path)
    model = GPT2LMHeadModel.from_pretrained(path, attn_implementation="sdpa").eval()
    model.generation_config.eos_token_id = None
    step = folder / "batch-step.onnx"
    if not step.exists():
        eager = GPT2LMHeadModel.from_pretrained(path, attn_implementation="eager").eval()
        past = [torch.zeros(1, 12, 3, 64) for _ in range(24)]
        names = [f"past{i}" for i in range(24)]
        axes = {"ids": {0: "batch", 1: "new"}, **{name: {0: "batch", 2: "past"} for name in names}}
        with torch.no_grad():
            torch.onnx.export(Step(eager), (torch.zeros(1, 1, dtype=torch.int64), *past), str(step), dynamo=False, opset_version=17,
                              input_names=["ids", *names], output_names=["logits", *[f"present{i}" for i in range(24)]], dynamic_axes=axes)
    return path, model, step


def run_transformers(model, prompts):
    ids = torch.tensor(prompts)
    mask = torch.ones_like(ids)
    times = []
    with torch.no_grad():
        for count in (1, NEW_TOKENS):
            begin = time.perf_counter()
            out = model.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=False, use_cache=True)
            times.append(time.perf_counter() - begin)
    return out[:, PROMPT:].tolist(), times[0], (times[1] - times[0]) / (NEW_TOKENS - 1)


def run_onnxruntime(session, prompts):
    past = [numpy.zeros((len(prompts), 12, 0, 64), numpy.float32) for _ in range(24)]
    ids, columns, first, total = numpy.array(prompts), [], 0.0, 0.0
    for i in range(NEW_TOKENS):
        begin = time.perf_counter()
        logits, *past = session.run(None, {"ids": ids, **{f"past{j}": value for j, value in enumerate(past)}})
        columns.append(logits.argmax(-1))
        ids = columns[-1][:, None]
        seconds = time.perf_counter() - begin
        first, total = (seconds, 0.0) if i == 0 else (first, total + seconds)
    return numpy.stack(columns, 1).tolist(), first, total / (NEW_TOKENS - 1)


def run_partita(partita, compiled, prompts, threads):
    words = [word for prompt in prompts for word in ("--ids", ",".join(map(str, prompt)))]
    done = subprocess.run([partita, "generate", str(compiled), *words, "--max-new-tokens", str(NEW_TOKENS), "--threads", str(threads),
                           "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    return facts["tokens"], facts["first_token_seconds"], len(prompts) / facts["tokens_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("partita")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cache", default="f32")
    parser.add_argument("--other")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path, model, step = make_models(arguments.folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(str(step), options, providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(0, 50257, (PROMPT,), generator=generator).tolist() for _ in range(arguments.batch)]
    systems = {"transformers": lambda: run_transformers(model, prompts), "onnxruntime": lambda: run_onnxruntime(session, prompts)}
    for name, partita in (("partita", arguments.partita), ("other", arguments.other)):
        if not partita:
            continue
        compiled = arguments.folder / f"compiled-{name}"
        cache = ["--cache", arguments.cache] if arguments.cache != "f32" else []
        subprocess.run([partita, "generate", str(path), "-o", str(compiled), "--cache-length", "256", "--rows", str(arguments.batch), *cache],
                       check=True)
        systems[name] = lambda partita=partita, compiled=compiled: run_partita(partita, compiled, prompts, arguments.threads)
    turns = {name: [] for name in systems}
    for _ in range(arguments.turns):
        for name, run in systems.items():
            turns[name].append(run())
    for name, runs in turns.items():
        first, token = (statistics.median(run[i] for run in runs) for i in (1, 2))
        ratio = statistics.median(run[2] / peer[2] for run, peer in zip(runs, turns["onnxruntime"]))
        tokens, expected = ([token for row in of[0][0] for token in row] for of in (runs, turns["transformers"]))
        same = sum(a == b for a, b in zip(tokens, expected))
        print(f"{name}: first token {1e3 * first:.1f} ms, {arguments.batch / token:.1f} tokens/s ({1e3 * token:.2f} ms a step, "
              f"{ratio:.2f} of onnxruntime's), {same} of {len(expected)} tokens as transformers")


if __name__ == "__main__":
    main()
