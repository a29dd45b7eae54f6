"""Makes tests/data/qlora-tiny: models whose weights `partita quantize` rounded, low-rank adapters, and PEFT's results for them.

Each folder has config.json, int4/ and int8/ from `partita quantize`, adapter/ from PEFT's `save_pretrained`, and io.safetensors: inputs and,
behind `int4.` and `int8.`, outputs, gradients of the adapters, the adapters after one step of AdamW and five losses. PyTorch computes with
the floats that the integers stand for.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_qlora.py PARTITA tests/data/qlora-tiny
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from make_adapters import PREFIX, VOCABULARY, fill
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

BITS = {"int4": ("--bits", "4", "--group", "32"), "int8": ()}


def dequantized(path, shapes):
    """The floats that the file's integers stand for, by name; `shapes` are those of the model's weights."""
    tensors = load_file(path)
    result = {}
    for name, tensor in tensors.items():
        if name not in shapes:
            continue
        scale = tensors.get(name + "_scale")
        if scale is None:
            result[name] = tensor
            continue
        shape = shapes[name]
        is_transposed = ".c_" in name  # GPT-2's weights are [in, out]
        if tensor.ndim == len(shape):
            result[name] = tensor.float() * (scale[None, :] if is_transposed else scale[:, None])
        else:
            bits = tensor.view(torch.uint8)
            integers = torch.stack([bits & 15, bits >> 4], dim=-1).flatten(-2).float()
            numbers = ((integers - 8) * scale[..., None]).flatten(-2)
            result[name] = numbers.T if is_transposed else numbers
        assert list(result[name].shape) == shape, name
    return result


def train(model, config, folder, io, run, seed):
    """Trains adapters of `model`, and adds the results to `io`."""
    adapted = get_peft_model(model, config)
    fill(torch.nn.ParameterList(p for p in adapted.parameters() if p.requires_grad), seed)
    adapted.save_pretrained(folder / "adapter")
    (folder / "adapter" / "README.md").unlink(missing_ok=True)
    adapted.train()
    targets = torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(3))
    (folder / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")
    trained = {name.removeprefix(PREFIX).replace(".default", ""): p for name, p in adapted.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(5):
        logits = adapted(input_ids=io["in.input_ids"], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            io[run + "out.y"] = logits.detach()
            io.update({run + "grad." + name: p.grad.clone() for name, p in trained.items()})
        optimizer.step()
        if step == 0:
            io.update({run + "step1." + name: p.detach().clone() for name, p in trained.items()})
    io[run + "losses"] = torch.tensor(losses)
    print(f"{folder.name} {run} losses {losses[0]:.4f} to {losses[-1]:.4f}")


def write(partita, folder, kind, config, adapters, seed):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = kind(config)
    fill(model, seed)
    io = {"in.input_ids": torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(2))}
    with tempfile.TemporaryDirectory() as floats:
        model.save_pretrained(floats)
        shutil.copy(pathlib.Path(floats) / "config.json", folder)
        for name, options in BITS.items():
            subprocess.run([partita, "quantize", floats, "--dim", "batch=4,seq=8", *options, "-o", folder / name], check=True)
            state = model.state_dict()
            numbers = dequantized(folder / name / "model.safetensors", {key: list(value.shape) for key, value in state.items()})
            rounded = kind(config)
            missing, unexpected = rounded.load_state_dict(numbers, strict=False)
            assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
            rounded.tie_weights()
            train(rounded, adapters, folder, io, name + ".", seed + 1)
    save_file({name: value.contiguous() for name, value in io.items()}, folder / "io.safetensors")


def main():
    partita, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    llama = LlamaConfig(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                        num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False, attn_implementation="eager")
    write(partita, root / "llama", LlamaForCausalLM, llama,
          LoraConfig(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False), seed=5)
    gpt2 = GPT2Config(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                      attn_implementation="eager")
    write(partita, root / "gpt2", GPT2LMHeadModel, gpt2,
          LoraConfig(r=2, lora_alpha=4, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True, init_lora_weights=False), seed=7)


if __name__ == "__main__":
    main()
