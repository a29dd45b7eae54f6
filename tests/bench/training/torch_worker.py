"""PyTorch training one model; harness.py describes the protocol. The first answer has the losses of the first two steps.

Usage: torch_worker.py WORKLOAD PRECISION THREADS eager|compile|nhwc|onednn. Parameters and optimizer are f32; bf16 uses autocast.
`onednn` runs linear layers and their gradients with PyTorch's oneDNN operator: PyPI's x86 builds of PyTorch multiply f32 with
MKL, which is slow on CPUs not made by Intel, and PyPI has no build that uses oneDNN throughout.
"""

import sys

import workloads
import harness
import seeded_models
import torch


def load(workload):
    """The module in training mode without dropout, so that all systems take the same steps."""
    module = seeded_models.load(workload.model, workload.folder).train().requires_grad_(True)
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return module


def product(x, weight, bias=None):
    """x times the transposed weight."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        rows, inputs = gradient.flatten(0, -2), x.flatten(0, -2)
        of_x = product(gradient, weight.t().contiguous()) if ctx.needs_input_grad[0] else None
        return of_x, product(rows.t().contiguous(), inputs.t().contiguous()), rows.sum(0) if ctx.needs_input_grad[2] else None


def use_onednn(module):
    """Replaces linear layers, and GPT-2's transposed ones; they keep their parameters."""
    from transformers.pytorch_utils import Conv1D

    def forward_of(layer):
        transposed = isinstance(layer, Conv1D)

        def forward(x):
            if x.dim() < 2:
                raise RuntimeError(f"expected rows to multiply, found the shape {tuple(x.shape)}")
            weight = layer.weight.t().contiguous() if transposed else layer.weight
            return OneDnnLinear.apply(x.contiguous(), weight, layer.bias)

        return forward

    layers = [part for part in module.modules() if isinstance(part, (torch.nn.Linear, Conv1D))]
    for layer in layers:
        layer.forward = forward_of(layer)
    return len(layers)


def make_step(workload, precision, how):
    values = {name: torch.from_numpy(value) for name, value in workload.batch_of().items()}
    targets = values.pop("targets").flatten()
    module = load(workload)
    if how == "nhwc":
        module = module.to(memory_format=torch.channels_last)
        values = {name: value.to(memory_format=torch.channels_last) for name, value in values.items()}
    if how == "onednn" and use_onednn(module) == 0:
        raise RuntimeError("expected linear layers to multiply by oneDNN, found none")
    optimizer = torch.optim.AdamW(module.parameters(), lr=workloads.RATE, betas=(workloads.BETA1, workloads.BETA2),
                                  eps=workloads.EPSILON, weight_decay=workloads.DECAY, fused=True)

    def loss_of():
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            output = module(**values) if "x" not in values else module(values["x"])
            logits = output if torch.is_tensor(output) else output.logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), targets)

    if how == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main():
    answers = harness.answers_file()
    name, precision, threads, how = sys.argv[1:]
    torch.set_num_threads(int(threads))
    step = make_step(workloads.find(name), precision, how)
    harness.serve(answers, {"losses": [step(), step()]}, step)


main()
