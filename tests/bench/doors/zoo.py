"""The models of run.py: a function for each, which returns a module and its inputs by name. Small sizes, no pretrained weights."""

import os
import re

os.environ["HF_HUB_OFFLINE"] = "1"

import timm
import torch
import torchvision
import torchvision.models as vision
import transformers as hf

BATCH, TOKENS, VOCABULARY, CLASSES = 4, 8, 48, 10
MODELS = {}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def token_ids(seed=1, length=TOKENS):
    # Without 0, which pads: PyTorch gives its embedding no gradient.
    return torch.randint(3, VOCABULARY, (BATCH, length), generator=generator(seed))


def image(size, seed=7):
    return torch.randn(BATCH, 3, size, size, generator=generator(seed))


def add(name, build):
    assert name not in MODELS, f"the model {name} exists twice"
    MODELS[name] = build


# transformers. Sizes have the same names in most configurations.
def hugging_face(name, model, config, inputs, **sizes):
    def build():
        settings = getattr(hf, config)(**sizes)
        parts = [settings] + [getattr(settings, key) for key in getattr(settings, "sub_configs", None) or {}]
        for part in parts:
            for key, value in part.to_dict().items():
                if re.search("dropout|pdrop|drop_path|layerdrop", key) and isinstance(value, (int, float)):
                    setattr(part, key, type(value)(0))
            part.use_cache = False
        return getattr(hf, model)(settings), inputs()

    add(f"transformers/{name}", build)


COMMON = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32,
              vocab_size=VOCABULARY, pad_token_id=0)
GROUPED = dict(COMMON, num_key_value_heads=2)


def causal(name, prefix, sizes=COMMON, **more):
    hugging_face(name, f"{prefix}ForCausalLM", f"{prefix}Config", lambda: {"input_ids": token_ids()}, **{**sizes, **more})


def masked(name, prefix, sizes=COMMON, **more):
    def inputs():
        mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
        mask[1, 5:] = 0
        return {"input_ids": token_ids(), "attention_mask": mask}

    hugging_face(name, f"{prefix}ForMaskedLM", f"{prefix}Config", inputs, **{**sizes, **more})


hugging_face("gpt2", "GPT2LMHeadModel", "GPT2Config", lambda: {"input_ids": token_ids()}, n_layer=2, n_embd=32, n_head=4,
             vocab_size=VOCABULARY, n_positions=32)
causal("gpt_neox", "GPTNeoX")
causal("gptj", "GPTJ", dict(n_layer=2, n_embd=32, n_head=4, vocab_size=VOCABULARY, n_positions=32, rotary_dim=4))
causal("opt", "OPT", dict(COMMON, ffn_dim=64, word_embed_proj_dim=32))
causal("bloom", "Bloom", dict(n_layer=2, hidden_size=32, n_head=4, vocab_size=VOCABULARY, pad_token_id=0))
causal("llama", "Llama", GROUPED)
causal("mistral", "Mistral", GROUPED, sliding_window=4)
causal("qwen2", "Qwen2", GROUPED)
causal("qwen3", "Qwen3", GROUPED, head_dim=8)
causal("gemma", "Gemma", GROUPED, head_dim=8)
causal("gemma2", "Gemma2", GROUPED, head_dim=8, sliding_window=4)
causal("phi", "Phi")
causal("phi3", "Phi3", GROUPED)
causal("olmo2", "Olmo2", GROUPED)
causal("falcon", "Falcon")
causal("mpt", "Mpt", dict(n_layers=2, d_model=32, n_heads=4, vocab_size=VOCABULARY, max_seq_len=32))
causal("stablelm", "StableLm", GROUPED)
causal("mixtral", "Mixtral", GROUPED, num_local_experts=4)
causal("qwen3_moe", "Qwen3Moe", GROUPED, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
masked("bert", "Bert")
masked("roberta", "Roberta")
masked("distilbert", "DistilBert", dict(n_layers=2, dim=32, n_heads=4, hidden_dim=64, vocab_size=VOCABULARY, max_position_embeddings=32))
masked("albert", "Albert", embedding_size=16)
masked("electra", "Electra", embedding_size=16)
masked("deberta_v2", "DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0)
masked("mpnet", "MPNet", pad_token_id=1)
hugging_face("t5", "T5ForConditionalGeneration", "T5Config",
             lambda: {"input_ids": token_ids(), "decoder_input_ids": token_ids(2, 6)}, num_layers=2, d_model=32, num_heads=4, d_kv=8,
             d_ff=64, vocab_size=VOCABULARY, decoder_start_token_id=0)
hugging_face("bart", "BartForConditionalGeneration", "BartConfig",
             lambda: {"input_ids": token_ids(), "decoder_input_ids": token_ids(2, 6)}, encoder_layers=2, decoder_layers=2, d_model=32,
             encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=VOCABULARY,
             max_position_embeddings=32, pad_token_id=0)
hugging_face("whisper", "WhisperForConditionalGeneration", "WhisperConfig",
             lambda: {"input_features": torch.randn(BATCH, 8, 16, generator=generator(7)), "decoder_input_ids": token_ids(2, 6)},
             encoder_layers=2, decoder_layers=2, d_model=32, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
             decoder_ffn_dim=64, vocab_size=VOCABULARY, max_source_positions=8, max_target_positions=32, num_mel_bins=8,
             pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
             begin_suppress_tokens=None)
hugging_face("clip_text", "CLIPTextModelWithProjection", "CLIPTextConfig", lambda: {"input_ids": token_ids()},
             **COMMON, projection_dim=16, eos_token_id=2)


def vision_transformer(name, prefix, **more):
    sizes = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
    hugging_face(name, f"{prefix}ForImageClassification", f"{prefix}Config", lambda: {"pixel_values": image(32)}, **{**sizes, **more},
                 id2label={i: str(i) for i in range(CLASSES)})


vision_transformer("vit", "ViT")
vision_transformer("deit", "DeiT")
vision_transformer("dinov2", "Dinov2")
hugging_face("clip_vision", "CLIPVisionModelWithProjection", "CLIPVisionConfig", lambda: {"pixel_values": image(32)}, num_hidden_layers=2,
             hidden_size=32, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, projection_dim=16)
hugging_face("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig", lambda: {"pixel_values": image(32)}, num_hidden_layers=2,
             hidden_size=32, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)


# timm.
def from_timm(name, architecture, size, **sizes):
    add(f"timm/{name}", lambda: (timm.create_model(architecture, num_classes=CLASSES, **sizes), {"x": image(size)}))


PATCHES = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
from_timm("vit", "vit_tiny_patch16_224", 32, **PATCHES)
from_timm("deit3", "deit3_small_patch16_224", 32, **PATCHES)
from_timm("beit", "beit_base_patch16_224", 32, **PATCHES)
from_timm("eva02", "eva02_tiny_patch14_224", 32, **PATCHES)
from_timm("cait", "cait_xxs24_224", 32, **PATCHES)
from_timm("xcit", "xcit_nano_12_p16_224", 32, **PATCHES)
add("timm/mixer", lambda: (timm.models.MlpMixer(num_classes=CLASSES, img_size=32, patch_size=8, num_blocks=2, embed_dim=32), {"x": image(32)}))
from_timm("swin", "swin_tiny_patch4_window7_224", 32, img_size=32, window_size=4, embed_dim=16, depths=(2, 1), num_heads=(2, 4))
from_timm("swinv2", "swinv2_tiny_window8_256", 32, img_size=32, window_size=4, embed_dim=16, depths=(2, 1), num_heads=(2, 4))
STAGES = dict(img_size=64, depths=(1, 1, 1, 1), embed_dim=(16, 16, 32, 32), stem_width=16, transformer_dim_head=8)
from_timm("coatnet", "coatnet_nano_rw_224", 64, **STAGES)
from_timm("maxvit", "maxvit_nano_rw_256", 64, **STAGES)
from_timm("maxxvit", "maxxvit_rmlp_nano_rw_256", 64, **STAGES)
from_timm("convnext", "convnext_atto", 64, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32))
from_timm("convnextv2", "convnextv2_atto", 64, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32))
from_timm("resnet", "resnet18", 64, channels=(8, 16, 24, 32))
from_timm("regnet", "regnety_002", 128)
from_timm("efficientnet", "test_efficientnet", 64)
from_timm("mobilenetv3", "mobilenetv3_small_050", 64)
from_timm("mobilevit", "mobilevit_xxs", 64)
from_timm("hiera", "hiera_tiny_224", 64, img_size=(64, 64), embed_dim=16, num_heads=1, stages=(1, 1, 2, 1))
from_timm("twins", "twins_svt_small", 64, img_size=64, embed_dims=(16, 32, 32, 32), num_heads=(2, 2, 4, 4), depths=(1, 1, 1, 1))
add("timm/volo", lambda: (timm.models.VOLO((1, 1, 1, 1), img_size=64, num_classes=CLASSES, embed_dims=(16, 32, 32, 32),
                                           num_heads=(2, 4, 4, 4)), {"x": image(64)}))
add("timm/poolformer", lambda: (timm.models.metaformer.MetaFormer(
    depths=(1, 1, 1, 1), dims=(8, 16, 24, 32), num_classes=CLASSES, downsample_norm=None, mlp_act=torch.nn.GELU, mlp_bias=True, res_scale_init_values=None,
    norm_layers=timm.layers.GroupNorm1, use_mlp_head=False), {"x": image(64)}))
from_timm("levit", "levit_128s", 64, img_size=64)
from_timm("davit", "davit_tiny", 64, depths=(1, 1, 1, 1), embed_dims=(16, 32, 32, 32), num_heads=(2, 4, 4, 4), window_size=4)


# torchvision.
def from_torchvision(name, function=None, size=64, seed=7, **sizes):
    def build():
        return getattr(vision, function or name)(weights=None, num_classes=CLASSES, **sizes), {"x": image(size, seed)}

    add(f"torchvision/{name}", build)


def swin_transformer():
    model = vision.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0, num_classes=CLASSES)
    return model, {"x": image(32)}


def vision_transformer_of_torchvision():
    model = vision.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES)
    return model, {"x": image(32)}


def vgg():
    layers = torchvision.models.vgg.make_layers([8, "M", 16, "M", 24, 24, "M", 32, 32, "M", 32, 32, "M"], batch_norm=True)
    model = vision.VGG(layers, num_classes=CLASSES)
    model.classifier[0] = torch.nn.Linear(32 * 7 * 7, 64)
    model.classifier[3] = torch.nn.Linear(64, 64)
    model.classifier[6] = torch.nn.Linear(64, CLASSES)
    return model, {"x": image(64)}


from_torchvision("resnet18")
add("torchvision/vgg", vgg)
add("torchvision/densenet", lambda: (vision.DenseNet(8, (2, 2, 2, 2), 16, num_classes=CLASSES), {"x": image(64)}))
from_torchvision("mobilenet_v2", width_mult=0.25)
# With the usual image, an input of the last ReLU is 2.5e-6 in double precision: rounding decides its gradient.
from_torchvision("shufflenet_v2_x0_5", seed=8)
from_torchvision("squeezenet1_1")
from_torchvision("googlenet", aux_logits=False, init_weights=False)
from_torchvision("regnet_x_400mf", size=128)
from_torchvision("mnasnet0_5")
from_torchvision("efficientnet_b0")
add("torchvision/swin", swin_transformer)
add("torchvision/vit", vision_transformer_of_torchvision)


# Full size, for run.py --full.
FULL = {"full/vit-b-16", "full/coatnet-0", "full/minilm"}


def minilm():
    model = hf.BertModel(hf.BertConfig(num_hidden_layers=6, hidden_size=384, num_attention_heads=12, intermediate_size=1536,
                                       hidden_dropout_prob=0, attention_probs_dropout_prob=0), add_pooling_layer=False)
    return model, {"input_ids": torch.randint(1000, 30000, (BATCH, 64), generator=generator(1))}


add("full/vit-b-16", lambda: (timm.create_model("vit_base_patch16_224"), {"x": image(224)}))
add("full/coatnet-0", lambda: (timm.create_model("coatnet_0_rw_224"), {"x": image(224)}))
add("full/minilm", minilm)

# Models whose first output is features: trained by the mean square error.
WITHOUT_CLASSES = {"transformers/clip_text", "transformers/clip_vision", "transformers/siglip_vision", "full/minilm"}
