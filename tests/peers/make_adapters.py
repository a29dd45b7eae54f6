"""Makes tests/data/lora-tiny: tiny models with low-rank adapters, as PEFT saves them, and PEFT's results for them.

Each folder has config.json and model.safetensors from transformers' `save_pretrained`, adapter/ from PEFT's, and io.safetensors: inputs,
outputs, gradients of the adapters, the adapters after one step of AdamW and five losses, under the names of Partita's parameters.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_adapters.py tests/data/lora-tiny
"""

import json
import pathlib
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

VOCABULARY = 64
PREFIX = "base_model.model."


def fill(module, seed):
    """Sets weights far from their initial values, so that a missing norm or bias shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if parameter.ndim < 2 else noise * (0.5 / parameter.shape[-1]) ** 0.5)


def write(folder, module, adapters, seed):
    shutil.rmtree(folder, ignore_errors=True)
    fill(module, seed)
    module.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    adapted = get_peft_model(module, adapters)
    fill(torch.nn.ParameterList(p for p in adapted.parameters() if p.requires_grad), seed + 1)
    adapted.save_pretrained(folder / "adapter")
    (folder / "adapter" / "README.md").unlink(missing_ok=True)
    adapted.train()
    ids = torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(2))
    targets = torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(3))
    (folder / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")
    trained = {name.removeprefix(PREFIX).replace(".default", ""): p for name, p in adapted.named_parameters() if p.requires_grad}
    io = {"in.input_ids": ids}
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(5):
        logits = adapted(input_ids=ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            io["out.y"] = logits.detach()
            io.update({"grad." + name: p.grad.clone() for name, p in trained.items()})
        optimizer.step()
        if step == 0:
            io.update({"step1." + name: p.detach().clone() for name, p in trained.items()})
    io["losses"] = torch.tensor(losses)
    # The weights after training, merged into the base.
    merged = adapted.merge_and_unload().state_dict()
    io.update({"merged." + name: value.clone() for name, value in merged.items() if name + ".weight" in trained or
               any(t.startswith(name.removesuffix("weight") + "lora_") for t in trained)})
    save_file({name: value.contiguous() for name, value in io.items()}, folder / "io.safetensors")
    print(f"{folder.name}: {len(trained)} adapters' tensors, losses {losses[0]:.4f} to {losses[-1]:.4f}")


def main():
    root = pathlib.Path(sys.argv[1])
    llama = LlamaConfig(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
                        num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False, attn_implementation="eager")
    write(root / "llama", LlamaForCausalLM(llama),
          LoraConfig(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False), seed=5)
    # Weights are stored [in, out]. One of two layers has adapters, with the scale of rsLoRA.
    gpt2 = GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                      attn_implementation="eager")
    write(root / "gpt2", GPT2LMHeadModel(gpt2),
          LoraConfig(r=2, lora_alpha=4, use_rslora=True, target_modules=["c_attn", "mlp.c_proj"], layers_to_transform=[1],
                     layers_pattern="h", fan_in_fan_out=True, init_lora_weights=False), seed=7)


if __name__ == "__main__":
    main()
