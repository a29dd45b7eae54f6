"""Writes tests/data/onnx-experts: mixtures of experts as PyTorch's exporters and onnxruntime write them in ONNX files.

`loops`: a language model with a layer of experts as a loop, in ways of which all compute the same, so that they share weights, outputs and
training in PyTorch. `mixtral`: transformers' own layer. `moe`: onnxruntime's operator MoE, with outputs of its CPU kernel.
Usage: make_onnx_experts.py. Needs `setup.sh --torch`. Its output is committed, so tests need no PyTorch.
"""

import io
import json
import pathlib
import warnings

import numpy
import onnx
import onnxruntime
import safetensors.torch
import torch
import transformers
from make_pt2 import seed_weights, train
from onnx import TensorProto, helper
from torch.nn import functional
from transformers.models.mixtral import modeling_mixtral

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "onnx-experts"
BATCH, SEQUENCE, VOCABULARY = 4, 5, 20
WIDTH, HIDDEN, EXPERTS, CHOICES = 12, 16, 5, 2
KINDS = ("rows", "where", "product", "columns", "one_hot")


class Expert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = torch.nn.Linear(WIDTH, HIDDEN, bias=False), torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.w2 = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Mixture(torch.nn.Module):
    """A layer as transformers 4 has it in Mixtral (`kind` is "rows"), or that computes every expert for every row."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.gate = torch.nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = torch.nn.ModuleList([Expert() for _ in range(EXPERTS)])

    def forward(self, x):
        batch, sequence, width = x.shape
        x = x.view(-1, width)
        weights, chosen = torch.topk(functional.softmax(self.gate(x), dim=1, dtype=torch.float), CHOICES, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        weights = weights.to(x.dtype)
        if self.kind == "rows":
            return self.by_rows(x, weights, chosen).reshape(batch, sequence, width)
        if self.kind == "columns":
            columns = torch.zeros(x.shape[0], EXPERTS).scatter(1, chosen, weights)
        if self.kind == "one_hot":
            columns = (functional.one_hot(chosen, EXPERTS).to(x.dtype) * weights[..., None]).sum(1)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            if self.kind == "where":
                column = torch.where(chosen == i, weights, torch.zeros_like(weights)).sum(-1, keepdim=True)
            elif self.kind == "product":
                column = (weights * (chosen == i)).sum(-1, keepdim=True)
            else:
                column = columns[:, i, None]
            y = y + expert(x) * column
        return y.reshape(batch, sequence, width)

    def by_rows(self, x, weights, chosen):
        y = torch.zeros_like(x)
        mask = functional.one_hot(chosen, num_classes=EXPERTS).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            choice, rows = torch.where(mask[i])
            here = expert(x[None, rows].reshape(-1, x.shape[-1])) * weights[rows, choice, None]
            y.index_add_(0, rows, here.to(x.dtype))
        return y


class Model(torch.nn.Module):
    def __init__(self, mixture):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.moe = mixture
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids)
        # The exporter keeps the name of a weight that multiplies a matrix.
        return self.head((x + self.moe(x)).reshape(-1, WIDTH)).reshape(*ids.shape, VOCABULARY)


def script(model, ids):
    """The exporter that PyTorch had before 2.9, with parameters under their names."""
    file = io.BytesIO()
    torch.onnx.export(model, (ids,), file, dynamo=False, opset_version=17, input_names=["ids"], output_names=["y"],
                      do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    return onnx.load_from_string(file.getvalue())


def dynamo(model, ids):
    return torch.onnx.export(model, (ids,), input_names=["ids"], output_names=["y"], dynamo=True, optimize=True, verbose=False).model_proto


def save(program, path):
    for part in (*program.graph.node, *program.graph.input, *program.graph.output, *program.graph.initializer):
        del part.metadata_props[:]
    for node in program.graph.node:
        node.doc_string = ""
    del program.graph.value_info[:], program.metadata_props[:], program.graph.metadata_props[:]
    onnx.save(program, path)


def write_model(name, models, exporters):
    """Files of models with equal parameters; the first one is trained."""
    folder = DATA / name
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    targets = torch.randint(VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    state = None
    outputs = []
    for kind, model in models.items():
        if state is None:
            seed_weights(model)
            state = {key: value.clone() for key, value in model.state_dict().items()}
        model.load_state_dict(state)
        model.eval()
        outputs.append(model(ids).detach())
        for exporter in exporters:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                save(exporter(model, ids), folder / f"{kind}_{exporter.__name__}.onnx")
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0], rtol=1e-5, atol=1e-6)
    model = next(iter(models.values()))
    tensors = {"in.ids": ids, "out.y": outputs[0]}
    model.train()
    tensors.update(train(model, {"ids": ids}, targets))
    safetensors.torch.save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "io.safetensors")
    (folder / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")
    print(name, {f.name: f.stat().st_size for f in sorted(folder.iterdir())}, tensors["losses"].tolist())


def mixtral():
    config = transformers.MixtralConfig(hidden_size=WIDTH, intermediate_size=HIDDEN, num_local_experts=EXPERTS,
                                        num_experts_per_tok=CHOICES)
    config._experts_implementation = "batched_mm"  # the only one that PyTorch's exporter can translate
    return modeling_mixtral.MixtralSparseMoeBlock(config)


# Operators of onnxruntime: name, attributes, biases.
MOES = {
    "relu": ({"k": 2, "activation_type": "relu", "normalize_routing_weights": 1}, True),
    "gelu": ({"k": 1, "activation_type": "gelu", "normalize_routing_weights": 0}, False),
    "silu": ({"k": 3, "activation_type": "silu", "normalize_routing_weights": 0}, True),
    "swiglu": ({"k": 2, "activation_type": "swiglu", "normalize_routing_weights": 1, "swiglu_fusion": 1}, True),
}


def write_moe():
    folder = DATA / "moe"
    folder.mkdir(parents=True, exist_ok=True)
    rng = numpy.random.default_rng(7)
    x = rng.normal(size=(BATCH, SEQUENCE, WIDTH)).astype("f")
    scores = rng.normal(size=(BATCH * SEQUENCE, EXPERTS)).astype("f")
    results = {"in.x": x, "in.scores": scores}
    for name, (attributes, has_bias) in MOES.items():
        inner = HIDDEN * 2 if "swiglu_fusion" in attributes else HIDDEN
        weights = {"moe.fc1": (EXPERTS, inner, WIDTH), "moe.fc1_bias": (EXPERTS, inner), "moe.fc2": (EXPERTS, WIDTH, HIDDEN),
                   "moe.fc2_bias": (EXPERTS, WIDTH)}
        weights = {key: (0.4 * rng.normal(size=shape)).astype("f") for key, shape in weights.items() if has_bias or "bias" not in key}
        inputs = ["x", "scores"] + [key if key in weights else "" for key in ("moe.fc1", "moe.fc1_bias", "moe.fc2", "moe.fc2_bias")]
        node = helper.make_node("MoE", inputs, ["y"], name="moe", domain="com.microsoft", **attributes)
        graph = helper.make_graph(
            [node], name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
                           helper.make_tensor_value_info("scores", TensorProto.FLOAT, scores.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
            [onnx.numpy_helper.from_array(value, key) for key, value in weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                  ir_version=10)
        onnx.save(model, folder / f"{name}.onnx")
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        results[f"out.{name}"] = session.run(None, {"x": x, "scores": scores})[0]
    safetensors.torch.save_file({key: torch.from_numpy(value) for key, value in results.items()}, folder / "io.safetensors")
    print("moe", {f.name: f.stat().st_size for f in sorted(folder.iterdir())})


if __name__ == "__main__":
    write_model("loops", {kind: Model(Mixture(kind)) for kind in KINDS}, (script, dynamo))
    write_model("mixtral", {"batched": Model(mixtral())}, (script, dynamo))
    write_moe()
