"""Writes tests/data/torch-tiny: tiny models of transformers and timm as .pt2 files, with PyTorch's outputs, gradients and losses; GPT-2,
BERT and Llama also as ONNX files and Hugging Face folders.

Usage: make_pt2.py [NAME...]. Needs `setup.sh --torch`. Its output is committed, so tests need no PyTorch. Run it when a model or torch's
version changes.
"""

import json
import os
import pathlib
import re
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import onnx
import safetensors.torch
import torch
import transformers
from torch.export import Dim

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "torch-tiny"
BATCH, SEQUENCE, CLASSES = 3, 5, 10
BATCH_DIM, SEQUENCE_DIM = Dim("batch", min=1, max=64), Dim("seq", min=2, max=16)


def tokens(seed, vocabulary=40, length=SEQUENCE):
    return torch.randint(vocabulary, (BATCH, length), generator=torch.Generator().manual_seed(seed))


def image(size):
    return torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(7))


def text_model(cls, config, **inputs):
    config.use_cache = False
    dims = {name: {0: BATCH_DIM, 1: SEQUENCE_DIM} for name in inputs}
    return cls(config), inputs, dims


def gpt2():
    return text_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=40, n_positions=16, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), input_ids=tokens(1))


def bert():
    mask = torch.ones(BATCH, SEQUENCE, dtype=torch.int64)
    mask[1, 3:] = 0
    return text_model(transformers.BertForMaskedLM, transformers.BertConfig(
        num_hidden_layers=2, hidden_size=16, num_attention_heads=2, intermediate_size=32, vocab_size=40, max_position_embeddings=16,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0), input_ids=tokens(1), attention_mask=mask)


def llama():
    return text_model(transformers.LlamaForCausalLM, transformers.LlamaConfig(
        num_hidden_layers=2, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, vocab_size=40,
        max_position_embeddings=16), input_ids=tokens(1))


def qwen3():
    return text_model(transformers.Qwen3ForCausalLM, transformers.Qwen3Config(
        num_hidden_layers=1, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=32,
        vocab_size=40, max_position_embeddings=16, tie_word_embeddings=True), input_ids=tokens(1))


def mixtral():
    return text_model(transformers.MixtralForCausalLM, transformers.MixtralConfig(
        num_hidden_layers=2, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24, vocab_size=40,
        max_position_embeddings=16, num_local_experts=5), input_ids=tokens(1))


def qwen3_moe():
    return text_model(transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(
        num_hidden_layers=1, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=32,
        moe_intermediate_size=12, num_experts=6, num_experts_per_tok=3, norm_topk_prob=True, vocab_size=40,
        max_position_embeddings=16), input_ids=tokens(1))


def t5():
    model, inputs, dims = text_model(transformers.T5ForConditionalGeneration, transformers.T5Config(
        num_layers=1, d_model=16, num_heads=2, d_kv=8, d_ff=32, vocab_size=40, dropout_rate=0, decoder_start_token_id=0),
        input_ids=tokens(1), decoder_input_ids=tokens(2, length=4))
    dims["decoder_input_ids"][1] = Dim("decoder_seq", min=2, max=16)
    return model, inputs, dims


def vit():
    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        num_hidden_layers=2, hidden_size=16, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, id2label={i: str(i) for i in range(CLASSES)}))
    return model, {"pixel_values": image(16)}, {"pixel_values": {0: BATCH_DIM}}


def coatnet():
    import timm.models.maxxvit as maxxvit

    parts = maxxvit._rw_coat_cfg(stride_mode="pool", conv_output_bias=False, rel_pos_type="bias")
    parts["transformer_cfg"].dim_head = 8
    config = maxxvit.MaxxVitCfg(embed_dim=(8, 8, 16, 16), depths=(1, 1, 1, 1), block_type=("C", "C", "T", "T"), stem_width=8, **parts)
    return maxxvit.MaxxVit(config, img_size=64, num_classes=CLASSES), {"x": image(64)}, {"x": {0: BATCH_DIM}}


def swinv2():
    import timm.models.swin_transformer_v2 as swin

    model = swin.SwinTransformerV2(img_size=32, patch_size=4, window_size=4, embed_dim=8, depths=(2, 1), num_heads=(2, 2),
                                   num_classes=CLASSES, drop_path_rate=0)
    return model, {"x": image(32)}, {"x": {0: BATCH_DIM}}


MODELS = {f.__name__: f for f in (gpt2, bert, llama, qwen3, mixtral, qwen3_moe, t5, vit, coatnet, swinv2)}


# Models that are also written as ONNX files and Hugging Face folders.
ALL_DOORS = {"gpt2", "bert", "llama"}


def seed_weights(model):
    """Replaces the initial weights, whose outputs differ little from class to class."""
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        is_scale = parameter.ndim == 1 and name.endswith("weight")
        spread = 0.1 if parameter.ndim == 1 else parameter[0].numel() ** -0.5
        parameter.data.copy_(noise * spread + (1 if is_scale else 0))


def output_of(result):
    return result.logits if hasattr(result, "logits") else result


def loss_of(model, inputs, targets):
    y = output_of(model(**inputs))
    return torch.nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))


def export(model, inputs, dims, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, (), inputs, dynamic_shapes=dims)
    for node in program.graph.nodes:
        # Only the innermost line outside torch and the innermost module, which keeps the file small.
        frames = re.findall(r'File "[^"]*", line \d+, in \S+', node.meta.get("stack_trace") or "")
        frames = [frame for frame in frames if "/torch/" not in frame]
        if stack := node.meta.get("nn_module_stack"):
            node.meta["nn_module_stack"] = {"m": (list(stack.values())[-1][0], "Module")}
        node.meta["stack_trace"] = re.sub(r'"[^"]*site-packages/', '"', frames[-1]) if frames else None
        for key in ("from_node", "torch_fn", "source_fn_stack"):
            node.meta.pop(key, None)
    program.example_inputs = None
    torch.export.save(program, path)


def write_other_doors(model, inputs, dims, folder):
    """The same model as an ONNX file of today's exporter and as a Hugging Face folder."""
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (), path, kwargs=inputs, dynamic_shapes=dims, dynamo=True, optimize=False, verbose=False,
                          external_data=False)
    file = onnx.load(path)
    # Stack traces are most of the file.
    for part in (*file.graph.node, *file.graph.input, *file.graph.output, *file.graph.initializer):
        del part.metadata_props[:]
    del file.graph.value_info[:], file.metadata_props[:], file.graph.metadata_props[:]
    onnx.save(file, path)
    model.save_pretrained(folder / "folder")
    (folder / "folder" / "generation_config.json").unlink(missing_ok=True)


def train(model, inputs, targets):
    """Gradients, parameters and buffers after the first of five AdamW steps, and all losses."""
    tensors, losses = {}, []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    for step in range(5):
        optimizer.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        losses.append(loss.detach())
        if step == 0:
            tensors.update({f"grad.{k}": v.grad.clone() for k, v in model.named_parameters() if v.grad is not None})
        optimizer.step()
        if step == 0:
            running = {k: v for k, v in model.named_buffers() if "running_" in k}
            tensors.update({f"step1.{k}": v.detach().clone() for k, v in {**dict(model.named_parameters()), **running}.items()})
    tensors["losses"] = torch.stack(losses)
    return tensors


def write(name):
    torch.manual_seed(0)
    model, inputs, dims = MODELS[name]()
    seed_weights(model)
    folder = DATA / name
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"in.{k}": v for k, v in inputs.items()}
    model.eval()
    tensors["out.eval.y"] = output_of(model(**inputs)).detach()
    has_batch_norm = any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in model.modules())
    export(model, inputs, dims, folder / "model_eval.pt2")
    if has_batch_norm:
        model.train()
        export(model, inputs, dims, folder / "model_train.pt2")
    if name in ALL_DOORS:
        write_other_doors(model, inputs, dims, folder)
    y = tensors["out.eval.y"]
    targets = torch.randint(y.shape[-1], y.shape[:-1], generator=torch.Generator().manual_seed(11))
    (folder / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")
    model.train()
    tensors.update(train(model, inputs, targets))
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "io.safetensors")
    print(name, {f.name: f.stat().st_size for f in sorted(folder.iterdir())}, "losses", tensors["losses"].tolist())


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        write(name)
