"""Inference of whole models by torch.compile: the backend `partita` against `inductor` and eager PyTorch, in one process, in alternating
rounds.

    ./bazelw build //compiler/api:libpartita_compiler.so //runtime/api:libpartita_runtime.so
    $(tests/peers/setup.sh --torch) tests/bench/inference/torch_backend.py [MODEL...] [--threads 2] [--rounds 7] [--batch 1]

A figure is the median over rounds of each round's median. Outputs must agree with eager PyTorch's. Models have seeded random weights.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "frontends/python"), str(ROOT / "tests/bench")]
os.environ.setdefault("PARTITA_COMPILER_LIBRARY", str(ROOT / "bazel-bin/compiler/api/libpartita_compiler.so"))
os.environ.setdefault("PARTITA_RUNTIME_LIBRARY", str(ROOT / "bazel-bin/runtime/api/libpartita_runtime.so"))

import harness  # pylint: disable=wrong-import-position
import torch

import partita.torch_backend  # pylint: disable=unused-import

MODELS = ["gpt2", "vit_base_patch16_224", "resnet50", "convnext_tiny", "coatnet_0_rw_224"]


def build(name, batch):
    """The module and its input."""
    torch.manual_seed(0)
    if name == "gpt2":
        import transformers

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))

            def forward(self, ids):
                return self.model(ids).logits

        return Logits().eval(), torch.randint(0, 50257, (batch, 128))
    import timm
    return timm.create_model(name).eval(), torch.randn(batch, 3, 224, 224)


def round_of(call, value, seconds):
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        call(value)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def measure(name, arguments):
    module, value = build(name, arguments.batch)
    calls, compile_s, expected = {"eager": module}, {}, module(value)
    for backend in arguments.backends:
        torch._dynamo.reset()  # pylint: disable=protected-access
        calls[backend] = torch.compile(module, backend=backend, options={"threads": arguments.threads} if backend == "partita" else None)
        begin = time.perf_counter()
        found = calls[backend](value)
        compile_s[backend] = time.perf_counter() - begin
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * float(expected.std()))
        calls[backend](value)
    rounds = {backend: [] for backend in calls}
    for backend in harness.turns(list(calls), arguments.rounds):
        rounds[backend].append(round_of(calls[backend], value, arguments.seconds))
    figures = {backend: statistics.median(times) for backend, times in rounds.items()}
    peers = [figures[backend] for backend in figures if backend != "partita"]
    print(f"{name:24}" + "".join(f"{figures[backend]:12.2f}" for backend in figures) + f"{figures['partita'] / min(peers):18.2f}" +
          f"{compile_s['partita']:14.1f}" + (f"{compile_s['inductor']:14.1f}" if "inductor" in compile_s else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help="gpt2, or a model of timm")
    parser.add_argument("--backends", nargs="+", default=["partita", "inductor"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each system in each round (default %(default)s)")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    harness.warn_if_busy()
    torch.set_num_threads(arguments.threads)
    print(f"{'ms':24}" + "".join(f"{backend:>12}" for backend in ["eager", *arguments.backends]) + f"{'partita / best':>18}" +
          "".join(f"{backend + ' s':>14}" for backend in arguments.backends))
    with torch.no_grad():
        for name in arguments.models:
            measure(name, arguments)
    print("s: of the first call, which compiles")


if __name__ == "__main__":
    main()
