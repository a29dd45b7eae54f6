"""Makes tests/data/fake-quantize-tiny: steps of a model of two layers that PyTorch trains with fake quantization.

layers.safetensors has, for y = W2 relu(W1 x) with both weights per row in int8 and both inputs per tensor in uint8: the weights `fc1.weight`
and `fc2.weight`, and for each step k the input `k.x`, `k.targets`, the loss, the gradients and the ranges after it. Ranges are moving averages
(MovingAverageMinMaxObserver) with AVERAGING; weights stay the same in all steps.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_fake_quantize.py tests/data/fake-quantize-tiny
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.ao.quantization import MovingAverageMinMaxObserver

ROWS, IN, HIDDEN, OUT, STEPS, AVERAGING = 8, 12, 16, 6, 3, 0.25


def round_weight(weight):
    largest = weight.detach().abs().amax(1)
    scale = torch.where(largest > 0, largest / 127, 1)  # for rows of zeros
    return torch.fake_quantize_per_channel_affine(weight, scale, torch.zeros_like(scale, dtype=torch.int32), 0, -127, 127)


def round_input(x, observer):
    observer(x.detach())
    scale, zero = observer.calculate_qparams()
    return torch.fake_quantize_per_tensor_affine(x, scale.item(), int(zero), 0, 255)


def main():
    torch.manual_seed(7)
    weights = {"fc1.weight": torch.randn(HIDDEN, IN) / 3, "fc2.weight": torch.randn(OUT, HIDDEN) / 4}
    # A row of zeros has a scale, too.
    weights["fc1.weight"][3] = 0
    for value in weights.values():
        value.requires_grad_()
    observers = {name: MovingAverageMinMaxObserver(averaging_constant=AVERAGING, dtype=torch.quint8, quant_min=0, quant_max=255) for name in weights}
    tensors = {name: value.detach().clone() for name, value in weights.items()}
    outside = 0
    for step in range(STEPS):
        # Later inputs are wider than the average of the ranges before them.
        x = torch.randn(ROWS, IN) * (1 + step)
        targets = torch.randn(ROWS, OUT)
        hidden = torch.relu(round_input(x, observers["fc1.weight"]) @ round_weight(weights["fc1.weight"]).T)
        rounded = round_input(hidden, observers["fc2.weight"])
        outside += int((rounded.detach() < hidden.detach() - 0.05).sum())
        y = rounded @ round_weight(weights["fc2.weight"]).T
        loss = torch.nn.functional.mse_loss(y, targets)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        tensors.update({f"{step}.x": x, f"{step}.targets": targets, f"{step}.y": y.detach(), f"{step}.loss": loss.detach()})
        tensors.update({f"{step}.grad.{name}": value for name, value in zip(weights, gradients)})
        for name, observer in observers.items():
            tensors[f"{step}.{name}_input_low"] = observer.min_val.clone()
            tensors[f"{step}.{name}_input_high"] = observer.max_val.clone()
    assert outside > 10, outside
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous() for name, value in sorted(tensors.items())}, folder / "layers.safetensors")
    print(f"{STEPS} steps, {outside} hidden numbers beyond their range")


if __name__ == "__main__":
    main()
