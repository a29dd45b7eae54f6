"""Makes tests/data/generating: tiny models that generate text, as transformers saves them, and what transformers generates.

Each folder has config.json and model.safetensors from `save_pretrained`, and generated.json: prompts, the new tokens that greedy search
with a cache adds to each, and the same with a repetition penalty. Seeds are chosen so that the best score is never within MARGIN of the
next one. Needs an environment from `tests/peers/setup.sh --torch`. Usage: make_generating.py tests/data/generating
"""

import json
import pathlib
import sys

import torch
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, MixtralConfig,
                          MixtralForCausalLM, Qwen3Config, Qwen3ForCausalLM, T5Config, T5ForConditionalGeneration)

VOCABULARY = 96
MARGIN = 1e-3
NEW_TOKENS = 24
PENALTY = 1.3
LENGTHS = (1, 5, 12, 20, 33)


def randomize(module, seed):
    """Sets weights so far apart that texts vary."""
    generator = torch.Generator().manual_seed(seed)
    seen = set()
    for name, tensor in sorted(module.state_dict().items()):
        if tensor.data_ptr() in seen or not tensor.is_floating_point():
            continue
        seen.add(tensor.data_ptr())
        noise = torch.randn(tensor.shape, generator=generator)
        if tensor.ndim < 2:
            tensor.copy_(noise * 0.2 + (0.0 if name.endswith("bias") else 1.0))
        elif name.endswith(("wte.weight", "wpe.weight", "shared.weight")):
            tensor.copy_(noise * 0.1)  # a tied head repeats large embeddings
        else:
            tensor.copy_(noise * (2.0 / tensor.shape[-1]) ** 0.5)


DECODER = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=64, eos_token_id=None, bos_token_id=None, pad_token_id=None)
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, eos_token_id=None,
                                               bos_token_id=None)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**DECODER)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**DECODER, sliding_window=7)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**DECODER, head_dim=16)),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)),
    "t5": lambda: T5ForConditionalGeneration(T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu",
        relative_attention_num_buckets=8, relative_attention_max_distance=20, decoder_start_token_id=0, eos_token_id=None,
        pad_token_id=0)),
}


class Tie(Exception):
    pass


def generate(module, prompt, penalty):
    ids = torch.tensor([prompt])
    out = module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=True,
                          repetition_penalty=penalty, return_dict_in_generate=True, output_scores=True)
    for scores in out.scores:
        best = scores[0].topk(2).values
        if best[0] - best[1] < MARGIN:
            raise Tie()
    begin = 1 if module.config.is_encoder_decoder else len(prompt)
    return out.sequences[0, begin:].tolist()


def make(folder, build):
    for seed in range(1000):
        module = build().eval()
        randomize(module, seed)
        generator = torch.Generator().manual_seed(seed)
        prompts = [torch.randint(1, VOCABULARY, (length,), generator=generator).tolist() for length in LENGTHS]
        try:
            tokens = [generate(module, prompt, None) for prompt in prompts]
            penalized = [generate(module, prompt, PENALTY) for prompt in prompts]
        except Tie:
            continue
        if min(len(set(text)) for text in tokens) < 4:
            continue
        module.generation_config.eos_token_id = None
        module.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        facts = {"seed": seed, "prompts": prompts, "tokens": tokens, "penalty": PENALTY, "penalized": penalized}
        (folder / "generated.json").write_text(json.dumps(facts) + "\n")
        print(folder.name, "seed", seed, tokens[1])
        return
    raise SystemExit(f"{folder}: expected a seed without ties, found none")


def main():
    torch.set_num_threads(1)
    output = pathlib.Path(sys.argv[1])
    with torch.no_grad():
        for name, build in MODELS.items():
            make(output / name, build)


if __name__ == "__main__":
    main()
