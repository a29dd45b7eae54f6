"""Exports a model of timm for one batch size. Usage: export.py MODEL BATCH FOLDER, which gets model.pt2 and model.onnx.

Weights are random, but outputs shall have the size of a trained model's: batch norms get statistics of random images, because with
those of a new model, activations of deep models vanish, and comparisons of outputs mean little.
"""

import pathlib
import sys
import warnings

import timm
import torch
from torch.onnx._internal.exporter._errors import ConversionError


def use_statistics(model, image):
    """Runs the model once with batch statistics, which become the running ones."""
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        model(image)
    for norm in norms:
        norm.eval()


def export_onnx(model, name, image, path):
    """torch.export views the result of fused attention in ways that its decomposition cannot: the decomposed result has other strides.
    Such models (MaxViT, BEiT) are exported with plain attention, which computes the same."""
    options = {"dynamo": True, "optimize": False, "verbose": False}
    try:
        torch.onnx.export(model, (image,), path, **options)
    except ConversionError:
        timm.layers.set_fused_attn(False)
        plain = timm.create_model(name).eval()
        plain.load_state_dict(model.state_dict())
        torch.onnx.export(plain, (image,), path, **options)


def main():
    name, batch, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = timm.create_model(name).eval()
    size = model.default_cfg["input_size"]
    use_statistics(model, torch.randn(4, *size))
    image = torch.randn(batch, *size)
    torch.export.save(torch.export.export(model, (image,)), folder / "model.pt2")
    export_onnx(model, name, image, folder / "model.onnx")


if __name__ == "__main__":
    main()
