"""PyTorch training one model, spoken to as harness.py says; its first answer has the losses of the first two steps.

Usage: torch_worker.py WORKLOAD PRECISION THREADS eager|compile|nhwc. Parameters and optimizer are of f32; bf16 is autocast.
"""

import sys

import workloads
import harness
import seeded_models
import torch


def load(workload):
    """The module in training mode, which drops nothing: the same steps everywhere."""
    module = seeded_models.load(workload.model, workload.folder).train().requires_grad_(True)
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return module


def make_step(workload, precision, how):
    values = {name: torch.from_numpy(value) for name, value in workload.batch_of().items()}
    targets = values.pop("targets").flatten()
    module = load(workload)
    if how == "nhwc":
        module = module.to(memory_format=torch.channels_last)
        values = {name: value.to(memory_format=torch.channels_last) for name, value in values.items()}
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
