"""Makes tests/data/distillation-tiny: a tiny student and its teacher, and torch's results of distilling.

student/ and teacher/ have config.json and model.safetensors from transformers' `save_pretrained`. student/io.safetensors has inputs and, for
each run of RUNS, gradients, the parameters after one step of AdamW and five losses, under the names of Partita's parameters.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_distillation.py tests/data/distillation-tiny
"""

import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

VOCABULARY = 64
# Temperature; weights of the divergence, the cross-entropy and the hidden loss; the hidden loss. `distilbert` has DistilBERT's weights.
RUNS = {
    "kl": (3.0, 1.0, 0.0, 0.0, None),
    "both": (2.0, 0.5, 0.5, 0.0, None),
    "mse": (2.0, 1.0, 1.0, 0.5, "mse"),
    "distilbert": (2.0, 5.0, 2.0, 1.0, "cosine"),
}


def fill(module, seed):
    """Sets weights far from their initial values, so that a missing norm or bias shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if parameter.ndim < 2 else noise * (0.5 / parameter.shape[-1]) ** 0.5)


def model(folder, layers, seed):
    shutil.rmtree(folder, ignore_errors=True)
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=layers, n_head=4, n_positions=32, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0, attn_implementation="eager")
    made = GPT2LMHeadModel(config)
    fill(made, seed)
    made.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return made


def layer_outputs(gpt2, ids, layer):
    """Logits, and the output of a layer (before the last norm)."""
    kept = []
    hook = gpt2.transformer.h[layer].register_forward_hook(lambda module, inputs, output: kept.append(
        output[0] if isinstance(output, tuple) else output))
    logits = gpt2(input_ids=ids, use_cache=False).logits
    hook.remove()
    return logits, kept[0]


def loss_of(student, teacher, ids, targets, run):
    temperature, kl, cross_entropy, hidden, hidden_loss = run
    logits, state = layer_outputs(student, ids, 0)
    with torch.no_grad():
        taught, taught_state = layer_outputs(teacher, ids, 2)
    divergence = functional.kl_div(functional.log_softmax(logits / temperature, -1).flatten(0, -2),
                                   functional.softmax(taught / temperature, -1).flatten(0, -2), reduction="batchmean")
    loss = kl * temperature**2 * divergence + cross_entropy * functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
    if hidden_loss == "mse":
        return loss + hidden * functional.mse_loss(state, taught_state)
    if hidden_loss == "cosine":
        ones = torch.ones(state[..., 0].numel())
        return loss + hidden * functional.cosine_embedding_loss(state.flatten(0, -2), taught_state.flatten(0, -2), ones)
    return loss


def main():
    root = pathlib.Path(sys.argv[1])
    teacher = model(root / "teacher", 3, seed=1).eval()
    ids = torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(2))
    targets = torch.randint(0, VOCABULARY, (4, 8), generator=torch.Generator().manual_seed(3))
    io = {"in.input_ids": ids}
    for name, run in RUNS.items():
        student = model(root / "student", 1, seed=4)
        student.train()
        trained = {key: p for key, p in student.named_parameters() if key != "lm_head.weight"}  # tied
        optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, weight_decay=0.01)
        losses = []
        for step in range(5):
            loss = loss_of(student, teacher, ids, targets, run)
            optimizer.zero_grad()
            loss.backward()
            losses.append(loss.item())
            if step == 0:
                io.update({f"{name}.grad.{key}": p.grad.clone() for key, p in trained.items()})
            optimizer.step()
            if step == 0:
                io.update({f"{name}.step1.{key}": p.detach().clone() for key, p in trained.items()})
        io[f"{name}.losses"] = torch.tensor(losses)
        print(f"{name}: losses {losses[0]:.4f} to {losses[-1]:.4f}")
    save_file({name: value.contiguous() for name, value in io.items()}, root / "student" / "io.safetensors")
    (root / "student" / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")


if __name__ == "__main__":
    main()
