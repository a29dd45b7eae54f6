"""Makes golden/: tiny transformers and timm models with random weights, and the outputs of those libraries.

Covers variants that tests/data/onnx-tiny lacks: llama, Mistral's sliding window, gated T5, BERT's token types and pooler,
sentence embeddings, timm's other CoAtNets. Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_golden.py FOLDER
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from timm.models.maxxvit import MaxxVit, MaxxVitCfg, MaxxVitConvCfg, MaxxVitTransformerCfg
from transformers import (BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, T5Config,
                          T5ForConditionalGeneration)


def randomize(module):
    """Sets weights far from their initial values, so that a missing bias or norm shows."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in module.state_dict().items():
        if not tensor.is_floating_point():
            continue
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith("running_var"):
            tensor.copy_(noise.abs() * 0.3 + 0.7)
        elif tensor.ndim < 2:
            tensor.copy_(noise * 0.2 + (1.0 if name.endswith(("norm.weight", "gamma")) else 0.1))
        else:
            tensor.copy_(noise * (0.5 / tensor[0].numel()) ** 0.5)


def save(folder, config, module, inputs, output, dtype=torch.float32, skip=()):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    state = {name: (value.to(dtype) if value.is_floating_point() else value).clone()
             for name, value in module.state_dict().items() if name not in skip}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    io = {f"in.{name}": value for name, value in inputs.items()}
    io["out.y"] = output.detach()
    save_file({name: value.contiguous() for name, value in io.items()}, folder / "io.safetensors")


def llama(folder):
    config = LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_theta=1000.0, attn_implementation="eager",
        rope_scaling={"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 16, "rope_theta": 1000.0})
    module = LlamaForCausalLM(config).eval()
    randomize(module)
    # Weights are stored as bf16, so they are rounded before the output is computed.
    module.load_state_dict({k: v.to(torch.bfloat16).float() for k, v in module.state_dict().items()})
    ids = torch.randint(0, 61, (2, 40), generator=torch.Generator().manual_seed(2))
    save(folder, config.to_dict(), module, {"input_ids": ids}, module(ids).logits, dtype=torch.bfloat16)


def mistral(folder):
    config = MistralConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
        sliding_window=7, attn_implementation="eager")
    module = MistralForCausalLM(config).eval()
    randomize(module)
    ids = torch.randint(0, 61, (2, 30), generator=torch.Generator().manual_seed(2))
    save(folder, config.to_dict(), module, {"input_ids": ids}, module(ids).logits)


def t5_gated(folder):
    config = T5Config(
        vocab_size=61, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_decoder_layers=1, num_heads=2,
        relative_attention_num_buckets=8, relative_attention_max_distance=20, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, decoder_start_token_id=0)
    module = T5ForConditionalGeneration(config).eval()
    module.lm_head.weight = torch.nn.Parameter(module.lm_head.weight.clone())
    randomize(module)
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 61, (2, 30), generator=generator)
    decoder_ids = torch.randint(0, 61, (2, 25), generator=generator)
    mask = torch.ones(2, 30, dtype=torch.int64)
    mask[1, 11:] = 0
    output = module(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).logits
    skip = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    config = config.to_dict()
    # transformers 5 does not save this setting; T5 1.1 was published with it.
    config["tie_word_embeddings"] = False
    del config["scale_decoder_outputs"]
    save(folder, config, module, {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder_ids}, output,
         skip=skip)


def bert(folder, sentence):
    config = BertConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                        max_position_embeddings=20)
    module = BertModel(config, add_pooling_layer=not sentence).eval()
    randomize(module)
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 61, (2, 11), generator=generator)
    mask = torch.ones(2, 11, dtype=torch.int64)
    mask[1, 6:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if not sentence:
        inputs["token_type_ids"] = torch.randint(0, 2, (2, 11), generator=generator)
    output = module(**inputs).last_hidden_state
    if sentence:
        weight = mask.unsqueeze(-1).float()
        output = torch.nn.functional.normalize((output * weight).sum(1) / weight.sum(1), dim=1)
    save(folder, config.to_dict(), module, inputs, output)
    if sentence:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(
            '{"word_embedding_dimension": 24, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}\n')
        kinds = ("Transformer", "Pooling", "Normalize")
        (folder / "modules.json").write_text(
            json.dumps([{"idx": i, "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]) + "\n")


def coatnet(folder, config, conv, transformer, head_hidden=None):
    torch.manual_seed(0)
    module = MaxxVit(
        MaxxVitCfg(embed_dim=(8, 16, 32, 48), depths=(2, 1, 2, 1), stem_width=(8, 8), head_hidden_size=head_hidden,
                   conv_cfg=MaxxVitConvCfg(**conv), transformer_cfg=MaxxVitTransformerCfg(dim_head=8, **transformer)),
        img_size=64, num_classes=10).eval()
    randomize(module)
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    sizes = {"num_classes": 10, "img_size": 64, "stem_width": [8, 8], "embed_dim": [8, 16, 32, 48],
             "depths": [2, 1, 2, 1], "block_type": ["C", "C", "T", "T"], "head_hidden_size": head_hidden}
    config["transformer"]["dim_head"] = 8
    save(folder, {**sizes, **config}, module, {"x": x}, module(x))


def coatnet_paper(folder):
    coatnet(folder,
            {"conv": {"expand_output": True, "output_bias": True, "stride": "depthwise", "act": "gelu",
                      "se": "ratio 0.25, silu"},
             "transformer": {"expand_first": True}},
            {}, {}, head_hidden=48)


def coatnet_rmlp(folder):
    coatnet(folder,
            {"conv": {"pre_norm_act": True, "stride": "avg-pool 2x2", "pool": "max 3x3", "se": "early, ratio 0.25, relu"},
             "transformer": {"rel_pos": "mlp 16", "pool": "max 3x3", "init_values": 0.1, "shortcut_bias": False}},
            {"stride_mode": "pool", "pool_type": "max", "pre_norm_act": True, "expand_output": False,
             "output_bias": False, "attn_early": True, "attn_act_layer": "relu", "act_layer": "silu"},
            {"expand_first": False, "shortcut_bias": False, "pool_type": "max", "init_values": 0.1,
             "rel_pos_type": "mlp", "rel_pos_dim": 16})


def coatnet_bn(folder):
    coatnet(folder,
            {"conv": {"stride": "depthwise", "output_bias": True},
             "transformer": {"norm": "batchnorm"}},
            {"expand_output": False, "act_layer": "silu"},
            {"expand_first": False, "norm_layer": "batchnorm2d"})


def main():
    root = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    with torch.no_grad():
        llama(root / "llama")
        mistral(root / "mistral")
        t5_gated(root / "t5_gated")
        bert(root / "bert_types", sentence=False)
        bert(root / "bert_sentence", sentence=True)
        coatnet_paper(root / "coatnet_paper")
        coatnet_rmlp(root / "coatnet_rmlp")
        coatnet_bn(root / "coatnet_bn")


if __name__ == "__main__":
    main()
