"""Writes tests/data/onnx-folded: a tiny text model as torch.onnx.export(dynamo=True) writes it by default, and PyTorch's training of it.

The exporter folds constants: weights of linear layers are transposed and renamed, a tied weight is stored twice. Usage: make_folded_onnx.py.
Needs `setup.sh --torch`. Its output is committed, so tests need no PyTorch.
"""

import pathlib

import onnx
import safetensors.torch
import torch

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "onnx-folded"
BATCH, SEQUENCE, VOCABULARY, WIDTH, HEADS = 2, 6, 24, 16, 2


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.ModuleDict({name: torch.nn.Linear(WIDTH, WIDTH, bias=name != "key") for name in
                                              ("query", "key", "value", "output")})
        self.mlp = torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.GELU(), torch.nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (self.attention[name](h).view(BATCH, SEQUENCE, HEADS, -1).transpose(1, 2) for name in ("query", "key", "value"))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention["output"](y.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm_2(x))


class Model(torch.nn.Module):
    """The output layer has the embedding's weight, and both blocks have one output projection."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Parameter(torch.empty(1, SEQUENCE, WIDTH))
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.blocks[1].attention["output"].weight = self.blocks[0].attention["output"].weight
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    generator = torch.Generator().manual_seed(5)
    model = Model().eval()
    for parameter in model.parameters():
        center = 1 if parameter.ndim == 1 else 0
        parameter.data.copy_(center + 0.2 * torch.randn(parameter.shape, generator=generator))
    ids = torch.randint(VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    targets = torch.randint(VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    program = torch.onnx.export(model, (ids,), input_names=["ids"], output_names=["y"], dynamo=True, verbose=False).model_proto
    for node in program.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key != "pkg.torch.onnx.stack_trace"]  # with paths of this machine
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    DATA.mkdir(parents=True, exist_ok=True)
    onnx.save(program, DATA / "model.onnx")
    tensors = {"in.ids": ids, "in.targets": targets, "out.y": model(ids).detach()}
    tensors.update({f"start.{name}": value.clone() for name, value in model.state_dict().items()})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids).reshape(-1, VOCABULARY), targets.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 0:
            tensors.update({f"step1.{name}": value.clone() for name, value in model.state_dict().items()})
    tensors["losses"] = torch.stack(losses)
    safetensors.torch.save_file({name: value.contiguous() for name, value in tensors.items()}, DATA / "io.safetensors")
    print({file.name: file.stat().st_size for file in sorted(DATA.iterdir())}, "losses", tensors["losses"].tolist())
    print([(weight.name, list(weight.dims)) for weight in program.graph.initializer])


if __name__ == "__main__":
    main()
