"""A peer in a separate process: loads the model once, then times the runs that the harness requests.

Usage: worker.py SYSTEM WORKLOAD THREADS. compiler/driver/bench/peer.py describes the protocol. The first answer is {"output": PATH},
after a first run.
"""

import sys
import tempfile

import numpy as np

import workloads
import harness
import peer


def onnxruntime_runner(workload, threads):
    session = peer.onnxruntime_session(workload.onnx, threads)
    feeds = workload.inputs()
    return lambda: session.run(None, feeds)[0]


def use_onednn_linear(module):
    """Linear layers with PyTorch's oneDNN operator and packed weights, because its MKL runs at half speed on CPUs not made by Intel.
    torch.compile uses the same operator for bf16."""
    import torch
    from transformers.pytorch_utils import Conv1D

    class PackedLinear(torch.nn.Module):
        def __init__(self, weight, bias):
            super().__init__()
            self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous()), bias

        def forward(self, x):
            return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    for name, child in module.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(module, name, PackedLinear(child.weight, child.bias))
        elif isinstance(child, Conv1D):
            setattr(module, name, PackedLinear(child.weight.t(), child.bias))
        else:
            use_onednn_linear(child)


def pytorch_runner(workload, threads, compiled=False, onednn=False, channels_last=False):
    import torch

    import seeded_models

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    inputs = {name: torch.from_numpy(value) for name, value in workload.inputs().items()}
    module = seeded_models.FirstOutput(seeded_models.load(workload.model, workload.folder), list(inputs))
    values = list(inputs.values())
    if onednn:
        use_onednn_linear(module)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        values = [value.to(memory_format=torch.channels_last) if value.ndim == 4 else value for value in values]
    if compiled:
        import torch._inductor.config

        torch._inductor.config.freezing = True
        module = torch.compile(module)

    def run():
        with torch.inference_mode():
            return module(*values).numpy()

    return run


RUNNERS = {
    "onnxruntime": onnxruntime_runner,
    "pytorch": pytorch_runner,
    "pytorch-onednn": lambda workload, threads: pytorch_runner(workload, threads, onednn=True),
    "pytorch-nhwc": lambda workload, threads: pytorch_runner(workload, threads, channels_last=True),
    "pytorch-compile": lambda workload, threads: pytorch_runner(workload, threads, compiled=True),
}


def main():
    system, name, threads = sys.argv[1:]
    answers = harness.answers_file()
    run = RUNNERS[system](workloads.find(name), int(threads))
    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, run())
    harness.serve(answers, {"output": file.name}, run)


if __name__ == "__main__":
    main()
