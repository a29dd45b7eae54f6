"""Makes tests/data/experts-tiny: tiny models with experts, as transformers saves them, and PyTorch's results for them.

Each folder has config.json and model.safetensors from `save_pretrained` (one tensor per expert), io.safetensors and targets.json:
inputs, outputs, gradients, the parameters after one step of AdamW and five losses, under the names of model.safetensors.
The folders named *_balanced train with the losses of routers, and keep the gradients of routers and embeddings only.
Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_expert_folders.py tests/data/experts-tiny [folder ...]
"""

import json
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import (DeepseekV3Config, DeepseekV3ForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM, SwitchTransformersConfig, SwitchTransformersForConditionalGeneration)

VOCABULARY = 64
# Choices of experts must not depend on rounding. This is the least distance between a chosen score and the best of the others; the
# seeds below are chosen for it.
MARGIN = 5e-4


def randomize(module, seed):
    """Sets weights far from their initial values, so that a missing norm or bias shows."""
    generator = torch.Generator().manual_seed(seed)
    seen = set()
    for name, tensor in module.state_dict().items():
        if tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith("e_score_correction_bias"):
            tensor.copy_(noise * 0.1)
        elif tensor.ndim < 2:
            tensor.copy_(1.0 + noise * 0.2)
        elif name.endswith(("mlp.gate.weight", "router.classifier.weight")):
            tensor.copy_(noise * (2.0 / tensor.shape[-1]) ** 0.5)
        else:
            tensor.copy_(noise * (0.5 / tensor.shape[-1]) ** 0.5)


def save_and_read(module):
    """The tensors that save_pretrained writes, and the folder's other files by name."""
    with tempfile.TemporaryDirectory() as directory:
        module.save_pretrained(directory)
        path = pathlib.Path(directory)
        return load_file(path / "model.safetensors"), json.loads((path / "config.json").read_text())


def under_file_names(module, values):
    """`values` by name of parameter, under the names and in the shapes of the file that save_pretrained writes."""
    kept = {name: value.detach().clone() for name, value in module.named_parameters()}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(values[name])
        buffers = {name for name, _ in module.named_buffers()}
        stored, _ = save_and_read(module)
        for name, parameter in module.named_parameters():
            parameter.copy_(kept[name])
    return {name: value.clone() for name, value in stored.items() if name not in buffers}


class Margins:
    """Records how near routers come to another choice."""

    def __init__(self, module, config):
        self.smallest = float("inf")
        for name, part in module.named_modules():
            if name.endswith(".mlp.gate") or name.endswith(".router.classifier"):
                part.register_forward_hook(lambda _, __, output, part=part: self.record(part, output, config))

    def record(self, part, output, config):
        logits = output if isinstance(output, torch.Tensor) else output[0]
        chosen = getattr(config, "num_experts_per_tok", 1)
        scores = logits.detach().reshape(-1, logits.shape[-1])
        if not hasattr(part, "e_score_correction_bias"):
            return self.gap(scores.softmax(-1), chosen)
        scores = scores.sigmoid() + part.e_score_correction_bias
        groups = scores.view(len(scores), part.num_group, -1)
        sums = groups.topk(2, dim=-1)[0].sum(-1)
        self.gap(sums, part.topk_group)
        open_groups = sums >= sums.topk(part.topk_group, dim=-1)[0][:, -1:]
        self.gap(groups.masked_fill(~open_groups[:, :, None], -1.0).reshape(len(scores), -1), chosen)

    def gap(self, scores, chosen):
        ordered = scores.sort(dim=-1, descending=True)[0]
        self.smallest = min(self.smallest, (ordered[:, chosen - 1] - ordered[:, chosen]).min().item())


def router_loss(config, output):
    """What transformers adds to the loss of labels."""
    if hasattr(output, "encoder_z_loss"):
        return (config.router_z_loss_coef * (output.encoder_z_loss + output.decoder_z_loss) +
                config.router_aux_loss_coef * (output.encoder_aux_loss + output.decoder_aux_loss))
    return config.router_aux_loss_coef * output.aux_loss


def write(folder, module, inputs, shape, seed):
    with torch.no_grad():
        randomize(module, seed)
    module.train()
    stored, config = save_and_read(module)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    margins = Margins(module, module.config)
    targets = torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(3))
    (folder / "targets.json").write_text(json.dumps({"targets": targets.tolist()}) + "\n")
    io = {f"in.{name}": value for name, value in inputs.items()}
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    balanced = getattr(module.config, "output_router_logits", False)
    for step in range(5):
        # Switch Transformers do not read the config's value.
        output = module(**inputs, use_cache=False, **({"output_router_logits": True} if balanced else {}))
        logits = output.logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        if balanced:
            loss = loss + router_loss(module.config, output)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            io["out.y"] = logits.detach()
            gradients = {name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
                         for name, parameter in module.named_parameters()}
            # An expert without tokens would hide an error in its weights.
            unused = [name for name, value in gradients.items() if "experts" in name and not value.any()]
            assert not unused, unused
        optimizer.step()
        if step == 0:
            values = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
            for prefix, tensors in (("grad.", gradients), ("step1.", values)):
                io.update({prefix + name: value for name, value in under_file_names(module, tensors).items()})
    io["losses"] = torch.tensor(losses)
    if balanced:
        io = {name: value for name, value in io.items()
              if name.startswith("in.") or name == "losses" or
              name.endswith((".gate.weight", "router.classifier.weight", "embed_tokens.weight", "shared.weight"))}
    save_file({name: value.contiguous() for name, value in io.items()}, folder / "io.safetensors")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder.name}: {len(stored)} tensors, {size / 1000:.0f} KB, losses {losses[0]:.4f} to {losses[-1]:.4f}, "
          f"margin {margins.smallest:.1e}")
    assert margins.smallest > MARGIN


def ids(length, seed=2):
    return torch.randint(0, VOCABULARY, (4, length), generator=torch.Generator().manual_seed(seed))


DECODER = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32,
               tie_word_embeddings=False, attn_implementation="eager", experts_implementation="eager")


# Large enough to matter beside the cross entropy.
BALANCED = dict(output_router_logits=True, router_aux_loss_coef=0.5)


def mixtral(folder, seed=17, **more):
    config = MixtralConfig(**DECODER, intermediate_size=24, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                           sliding_window=None, **more)
    write(folder, MixtralForCausalLM(config), {"input_ids": ids(10)}, (4, 10), seed=seed)


def mixtral_balanced(folder):
    mixtral(folder, seed=7, **BALANCED)


def qwen3_moe(folder, inputs=None, seed=24, **more):
    # One dense layer, and weights of experts that are not normalised.
    config = Qwen3MoeConfig(**{**DECODER, "num_hidden_layers": 3}, intermediate_size=28, moe_intermediate_size=12,
                            num_key_value_heads=2, head_dim=8, num_experts=8, num_experts_per_tok=2, norm_topk_prob=False,
                            mlp_only_layers=[1], **more)
    write(folder, Qwen3MoeForCausalLM(config), {"input_ids": ids(10), **(inputs or {})}, (4, 10), seed=seed)


def qwen3_moe_balanced(folder):
    # Padding does not count in the loss of the routers.
    mask = torch.ones(4, 10, dtype=torch.long)
    mask[0, 7:] = 0
    mask[2, 5:] = 0
    qwen3_moe(folder, {"attention_mask": mask}, seed=3, **BALANCED)


def deepseek_v3(folder):
    config = DeepseekV3Config(
        **{**DECODER, "num_hidden_layers": 3, "max_position_embeddings": 128}, intermediate_size=28, moe_intermediate_size=12,
        num_key_value_heads=4,
        n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, n_group=4, topk_group=2, norm_topk_prob=True,
        routed_scaling_factor=1.5, first_k_dense_replace=1, q_lora_rank=12, kv_lora_rank=8, qk_rope_head_dim=8,
        qk_nope_head_dim=6, v_head_dim=5, num_mtp_layers=0,
        rope_parameters={"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 32,
                         "beta_fast": 2.0, "beta_slow": 0.5, "mscale": 0.7, "mscale_all_dim": 1.0})
    write(folder, DeepseekV3ForCausalLM(config), {"input_ids": ids(10)}, (4, 10), seed=15)


def switch_transformers(folder, seed=13, **more):
    # A capacity that drops tokens.
    config = SwitchTransformersConfig(
        vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=24, num_heads=4, num_layers=2, num_decoder_layers=2,
        num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_experts=4, expert_capacity=4, dropout_rate=0.0,
        router_jitter_noise=0.0, relative_attention_num_buckets=8, relative_attention_max_distance=20,
        attn_implementation="eager", **more)
    inputs = {"input_ids": ids(12), "decoder_input_ids": ids(9, seed=4)}
    write(folder, SwitchTransformersForConditionalGeneration(config), inputs, (4, 9), seed=seed)


def switch_transformers_balanced(folder):
    switch_transformers(folder, seed=7, **BALANCED, router_z_loss_coef=0.25)


def main():
    """Makes all folders, or those that are named."""
    root = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    for make in (mixtral, qwen3_moe, deepseek_v3, switch_transformers, mixtral_balanced, qwen3_moe_balanced,
                 switch_transformers_balanced):
        if make.__name__ in sys.argv[2:] or len(sys.argv) == 2:
            make(root / make.__name__)


if __name__ == "__main__":
    main()
