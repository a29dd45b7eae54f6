"""Makes tests/data/pruned-tiny: which weights of the models of tests/data/lora-tiny torch prunes.

MODEL.safetensors has, for each weight of a product, three tensors of booleans, true where the weight remains: `half.NAME` by
torch.nn.utils.prune.l1_unstructured, `global.NAME` by global_unstructured over all of them, and `2of4.NAME` by torch.ao.pruning's
WeightNormSparsifier along the sums of the products.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_pruned.py tests/data/lora-tiny tests/data/pruned-tiny
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch.ao.pruning import WeightNormSparsifier
from torch.nn.utils import prune

HALF, GLOBAL = 0.5, 0.3
# Endings of the names of weights of products; GPT-2 stores them [in, out].
PRODUCTS = {
    "llama": ("_proj.weight", "lm_head.weight"),
    "gpt2": ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"),
}


def linear(weight):
    module = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    with torch.no_grad():
        module.weight.copy_(weight)
    return module


def masks(model, weights):
    turned = model == "gpt2"
    found = {}
    everything = {name: linear(weight) for name, weight in weights.items()}
    prune.global_unstructured([(module, "weight") for module in everything.values()], pruning_method=prune.L1Unstructured, amount=GLOBAL)
    for name, weight in weights.items():
        found["global." + name] = everything[name].weight_mask.bool()
        half = linear(weight)
        prune.l1_unstructured(half, "weight", HALF)
        found["half." + name] = half.weight_mask.bool()
        sequence = torch.nn.Sequential(linear(weight.T if turned else weight))
        sparsifier = WeightNormSparsifier(sparsity_level=1.0, sparse_block_shape=(1, 4), zeros_per_block=2)
        sparsifier.prepare(sequence, config=[{"tensor_fqn": "0.weight"}])
        sparsifier.step()
        mask = sequence[0].parametrizations.weight[0].mask.bool()
        found["2of4." + name] = mask.T if turned else mask
    return found


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for model, endings in PRODUCTS.items():
        weights = {name: value for name, value in load_file(source / model / "model.safetensors").items() if name.endswith(endings)}
        found = masks(model, weights)
        save_file({name: value.contiguous() for name, value in sorted(found.items())}, target / f"{model}.safetensors")
        print(f"{model}: {len(weights)} weights, {sum(v.numel() for v in weights.values())} elements")


if __name__ == "__main__":
    main()
