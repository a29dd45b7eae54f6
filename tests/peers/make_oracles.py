"""Writes the expected values in tests/data/minilm and tests/data/coatnet-0 from PyTorch. Needs `setup.sh --torch`.

Usage: make_oracles.py CACHE_DIR. Run it when a model or a peer's version changes. Its output is committed, so tests need neither
PyTorch nor timm. Values are computed in double precision and checked against onnxruntime in single precision.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime
import safetensors.numpy
import tokenizers
import torch

import seeded_models
import seeded_weights

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"

SENTENCES = """\
Yes.
A cat sleeps.
The train to Bologna leaves at nine.
Compilers translate programs; this one also divides them.
How many graphics cards does it take to train a language model in one day?
The suite opens with a prelude, and every following part keeps its key but changes its dance.
Rain fell on the harbour all night, and by morning the fishing boats had turned their bows into the wind.
12.5% of 8 GB is 1 GB, isn't it? (Yes: 8 × 0.125 = 1.)
Die Bratsche klingt tiefer als die Geige, aber höher als das Cello.
When the last carriage had passed the level crossing, the keeper raised the barrier, wiped the rain from his lamp, looked \
along the empty line towards the hills, and went back into the small warm room where his supper, a book and an old dog were \
waiting for him as they did every evening of the year.
"""


def run_onnx(module, inputs):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "model.onnx"
        seeded_models.export_onnx(module, inputs, path)
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def run_torch(module, inputs):
    """In double precision."""
    wrapped = seeded_models.FirstOutput(module.double(), list(inputs))
    values = [torch.from_numpy(value) for value in inputs.values()]
    with torch.inference_mode():
        return wrapped(*[value.double() if value.is_floating_point() else value for value in values]).numpy()


def embed(hidden, mask):
    """Sentence-transformers' pooling: the mean over a text's tokens, then scaled to length one."""
    mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def write_minilm(cache):
    folder = seeded_models.ensure_folder("minilm", cache)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    sentences = SENTENCES.strip().split("\n")
    encodings = tokenizer.encode_batch(sentences)
    inputs = {"input_ids": np.array([e.ids for e in encodings]),
              "attention_mask": np.array([e.attention_mask for e in encodings])}
    module = seeded_models.load("minilm", folder)
    single = embed(run_onnx(module, inputs), inputs["attention_mask"])
    expected = embed(run_torch(module, inputs), inputs["attention_mask"])
    distance = 1 - (single * expected).sum(1)
    print(f"minilm: tokens {inputs['attention_mask'].sum(1)}, cosine distance of onnxruntime at most {distance.max():.1e}")
    assert distance.max() < 1e-6
    directory = DATA / "minilm"
    directory.mkdir(exist_ok=True)
    (directory / "sentences.txt").write_text("\n".join(sentences) + "\n")
    for name, value in inputs.items():
        np.save(directory / f"{name}.npy", value)
    np.save(directory / "embeddings.npy", expected.astype(np.float32))


def write_coatnet(cache):
    folder = seeded_models.ensure_folder("coatnet-0", cache)
    state = safetensors.numpy.load_file(folder / "model.safetensors")
    lines = []
    for name in sorted(state, key=lambda key: (state[key].dtype != np.int64, key)):  # 8-byte elements first: aligned
        value = state[name]
        shape = "x".join(map(str, value.shape)) or "scalar"
        if value.dtype == np.int64:
            assert not value.any()
            lines.append(f"{name} I64 {shape} 0 0")
            continue
        center, spread = map(np.float32, seeded_weights.distribution(name, value.shape))
        assert (seeded_weights.seeded_array(name, value.shape, center, spread) == value).all()
        lines.append(f"{name} F32 {shape} {center} {spread}")
    inputs = {"x": seeded_weights.seeded_array("image", (1, 3, 224, 224), 0.0, 3.0**0.5)}
    module = seeded_models.load("coatnet-0", folder)
    single, expected = run_onnx(module, inputs), run_torch(module, inputs)
    error = np.abs(single - expected).max() / np.abs(expected).max()
    print(f"coatnet-0: {len(lines)} tensors, error of onnxruntime {error:.1e} of the largest logit {np.abs(expected).max():.2f}")
    assert error < 1e-5
    directory = DATA / "coatnet-0"
    directory.mkdir(exist_ok=True)
    (directory / "tensors.txt").write_text("\n".join(lines) + "\n")
    config = json.loads((folder / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    np.save(directory / "logits.npy", expected.astype(np.float32))


if __name__ == "__main__":
    write_minilm(sys.argv[1])
    write_coatnet(sys.argv[1])
