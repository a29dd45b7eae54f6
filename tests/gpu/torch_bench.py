"""Times a benchmark of `run` in PyTorch: torch_bench.py NAME prints "MILLISECONDS HOW", the median of ten runs. Prints nothing
if PyTorch is not installed or sees no GPU. A step is forward, backward and fused AdamW, in bf16 by autocast and compiled. If
compilation fails, it runs uncompiled."""

import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(0)


def gpt2(layers, width, heads):
    import transformers

    config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads, use_cache=False, resid_pdrop=0.0,
                                     embd_pdrop=0.0, attn_pdrop=0.0)
    text = torch.randint(50257, (8, 1024), device="cuda")
    return transformers.GPT2LMHeadModel(config), {"input_ids": text}, torch.randint(50257, (8 * 1024,), device="cuda")


def vit():
    import transformers

    config = transformers.ViTConfig(id2label={index: f"LABEL_{index}" for index in range(1000)}, hidden_size=1024,
                                    intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16)
    images = torch.randn(32, 3, 224, 224, device="cuda")
    return (transformers.ViTForImageClassification(config), {"pixel_values": images},
            torch.randint(1000, (32,), device="cuda"))


def coatnet():
    import timm

    return (timm.create_model("coatnet_2_rw_224"), {"x": torch.randn(32, 3, 224, 224, device="cuda")},
            torch.randint(1000, (32,), device="cuda"))


def step_of(make):
    module, values, targets = make()
    module = module.cuda().train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)

    def loss_of():
        with torch.autocast("cuda", torch.bfloat16):
            output = module(**values)
            logits = output if torch.is_tensor(output) else output.logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), targets)

    def make_step(loss_of):
        def step():
            optimizer.zero_grad(set_to_none=True)
            loss_of().backward()
            optimizer.step()

        return step

    return make_step(torch.compile(loss_of)), make_step(loss_of)


def kernel_of(function, *shapes):
    values = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]
    compiled = torch.compile(function)
    return (lambda: compiled(*values)), (lambda: function(*values))


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_of_parts(batch, heads, groups, positions, size, causal):
    """Attention whose q, k and v are parts of one tensor, as attention_model has it."""
    def work(x):
        parts = x.split([heads * size, groups * size, groups * size], 2)
        q, k, v = (part.unflatten(2, (-1, size)).transpose(1, 2) for part in parts)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != groups)
        return y.transpose(1, 2).flatten(2)

    return kernel_of(work, (batch, positions, (heads + 2 * groups) * size))


NAMES = {
    "gpt2-8x1024-bf16": lambda: step_of(lambda: gpt2(12, 768, 12)),
    "gpt2-medium-8x1024-bf16": lambda: step_of(lambda: gpt2(24, 1024, 16)),
    "vit-l-16-32-bf16": lambda: step_of(vit),
    "coatnet-2-32-bf16": lambda: step_of(coatnet),
    "softmax": lambda: kernel_of(lambda x: torch.softmax(x, 1), (32768, 4096)),
    "layer_norm": lambda: kernel_of(lambda x, g, b: torch.nn.functional.layer_norm(x, (4096,), g, b), (32768, 4096), (4096,), (4096,)),
    "attention": lambda: kernel_of(attention, *[(8, 16, 2048, 64)] * 3),
    "attention-gpt2-medium": lambda: attention_of_parts(8, 16, 16, 1024, 64, True),
    "attention-vit-l-16": lambda: attention_of_parts(32, 16, 16, 197, 64, False),
    "attention-llama": lambda: attention_of_parts(2, 32, 8, 2048, 128, True),
}


def graphs_compiled():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def median_of(work):
    """Median milliseconds of ten runs, after warm-up runs until two in a row compile nothing (at most ten)."""
    before, quiet = graphs_compiled(), 0
    for _ in range(10):
        work()
        quiet = quiet + 1 if graphs_compiled() == before else 0
        before = graphs_compiled()
        if quiet == 2:
            break
    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    if graphs_compiled() != before:
        raise RuntimeError("expected nothing to be compiled while runs are timed, found that it was")
    return statistics.median(times)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        sys.exit(f"expected one of {', '.join(NAMES)}, found {' '.join(sys.argv[1:])}")
    if not torch.cuda.is_available():
        return
    compiled, eager = NAMES[sys.argv[1]]()
    try:
        print(f"{median_of(compiled):.4f} PyTorch compiled")
    except Exception as error:  # the compiler needs packages that may be missing
        print(error, file=sys.stderr)
        print(f"{median_of(eager):.4f} PyTorch")


main()
