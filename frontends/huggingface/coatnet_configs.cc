// Configs of the named CoAtNets: the paper's (Dai et al., 2021, arXiv
// 2106.04803, tables 3, 11 and 12) and timm's.
//
// The configs are written out in full, in a form that a folder may also
// contain: widths, depths and kinds of stages, and sections "conv" and
// "transformer" that choose variants of the blocks.
#include "frontends/huggingface/models.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace partita::huggingface {
namespace {

using nlohmann::json;

struct Sizes {
  const char* name;
  std::vector<int64_t> stem, widths, depths;
  int64_t head_size = 32;
};

json base(const Sizes& sizes) {
  json config;
  config["num_classes"] = 1000;
  config["in_chans"] = 3;
  config["img_size"] = 224;
  config["stem_width"] = sizes.stem;
  config["embed_dim"] = sizes.widths;
  config["depths"] = sizes.depths;
  config["block_type"] = {"C", "C", "T", "T"};
  config["conv"] = {{"expand_ratio", 4.0},
                    {"kernel_size", 3},
                    {"norm_eps", 1e-5},
                    {"pool", "avg 2x2"}};
  config["transformer"] = {
      {"expand_ratio", 4.0},     {"norm_eps", 1e-6},
      {"pool", "avg 2x2"},       {"act", "gelu"},
      {"norm", "layernorm2d"},   {"attn_bias", true},
      {"rel_pos", "bias table"}, {"dim_head", sizes.head_size}};
  return config;
}

// Table 12 gives CoAtNet-6's last stage a width of 2048, but only 3072
// (CoAtNet-7's width) yields the 1.47 billion parameters of table 5, and about
// its 1521 G operations. With 2048 there are 1.35 billion parameters.
const Sizes kPaper[] = {
    {"coatnet-0", {64, 64}, {96, 192, 384, 768}, {2, 3, 5, 2}},
    {"coatnet-1", {64, 64}, {96, 192, 384, 768}, {2, 6, 14, 2}},
    {"coatnet-2", {128, 128}, {128, 256, 512, 1024}, {2, 6, 14, 2}},
    {"coatnet-3", {192, 192}, {192, 384, 768, 1536}, {2, 6, 14, 2}},
    {"coatnet-4", {192, 192}, {192, 384, 768, 1536}, {2, 12, 28, 2}},
    {"coatnet-5", {192, 192}, {256, 512, 1280, 2048}, {2, 12, 28, 2}, 64},
    {"coatnet-6",
     {192, 192},
     {192, 384, 768, 1536, 3072},
     {2, 4, 8, 42, 2},
     128},
    {"coatnet-7",
     {192, 192},
     {256, 512, 1024, 2048, 3072},
     {2, 4, 8, 42, 2},
     128},
};

json paper(const Sizes& sizes) {
  json config = base(sizes);
  config["head_hidden_size"] = sizes.widths.back();
  // The third stage is convolutions, then attention at the same resolution.
  if (sizes.widths.size() == 5) {
    config["block_type"] = {"C", "C", "C", "T", "T"};
    config["strides"] = {2, 2, 2, 1, 2};
  }
  json& conv = config["conv"];
  conv["expand_output"] = true;
  conv["output_bias"] = true;
  conv["stride"] = "depthwise";
  conv["se"] = "ratio 0.25, silu";
  conv["act"] = "gelu";
  config["transformer"]["expand_first"] = true;
  config["transformer"]["shortcut_bias"] = true;
  return config;
}

// The properties in which timm's own models differ from the paper's and from
// each other.
struct TimmVariant {
  Sizes sizes;
  bool pre_norm_act = true;
  bool output_bias = false;
  const char* stride = "depthwise";
  const char* se = "ratio 0.25, relu";
  bool shortcut_bias = true;
  const char* rel_pos = "bias table";
  const char* pool = "avg 2x2";
  double layer_scale = 0.0;
  const char* norm = "layernorm2d";
};

constexpr char kEarly[] = "early, ratio 0.25, relu";
constexpr char kSilu[] = "ratio 0.25, silu";

const std::vector<TimmVariant>& timmVariants() {
  static const std::vector<TimmVariant> variants = [] {
    const std::vector<int64_t> pico = {64, 128, 256, 512},
                               zero = {96, 192, 384, 768},
                               two = {128, 256, 512, 1024},
                               three = {192, 384, 768, 1536};
    const std::vector<int64_t> nano_depths = {3, 4, 6, 3},
                               zero_depths = {2, 3, 7, 2},
                               depths = {2, 6, 14, 2};
    std::vector<TimmVariant> v;
    v.push_back({{"coatnet_pico_rw", {32, 64}, pico, {2, 3, 5, 2}},
                 false,
                 true,
                 "depthwise",
                 kSilu});
    v.push_back({{"coatnet_nano_rw", {32, 64}, pico, nano_depths},
                 false,
                 true,
                 "avg-pool 2x2",
                 kSilu});
    v.push_back({{"coatnet_0_rw", {32, 64}, zero, zero_depths},
                 true,
                 false,
                 "avg-pool 2x2",
                 kEarly,
                 false});
    v.push_back({{"coatnet_1_rw", {32, 64}, zero, depths},
                 true,
                 false,
                 "depthwise",
                 kEarly,
                 false});
    v.push_back({{"coatnet_2_rw", {64, 128}, two, depths},
                 true,
                 false,
                 "depthwise",
                 kSilu});
    v.push_back({{"coatnet_3_rw", {96, 192}, three, depths},
                 true,
                 false,
                 "depthwise",
                 kSilu});
    v.back().layer_scale = 1e-6;
    v.push_back({{"coatnet_bn_0_rw", {32, 64}, zero, zero_depths},
                 true,
                 false,
                 "depthwise",
                 kEarly,
                 false});
    v.back().norm = "batchnorm";
    v.push_back({{"coatnet_rmlp_nano_rw", {32, 64}, pico, nano_depths},
                 false,
                 true,
                 "depthwise",
                 kSilu});
    v.back().rel_pos = "mlp 384";
    v.push_back({{"coatnet_rmlp_0_rw", {32, 64}, zero, zero_depths}});
    v.back().rel_pos = "mlp 512";
    v.push_back({{"coatnet_rmlp_1_rw", {32, 64}, zero, depths},
                 true,
                 false,
                 "avg-pool 2x2",
                 kEarly,
                 false});
    v.back().rel_pos = "mlp 384";
    v.back().pool = "max 3x3";
    v.push_back({{"coatnet_rmlp_1_rw2", {32, 64}, zero, depths}});
    v.back().rel_pos = "mlp 512";
    v.push_back({{"coatnet_rmlp_2_rw", {64, 128}, two, depths},
                 true,
                 false,
                 "depthwise",
                 kSilu});
    v.back().rel_pos = "mlp 512";
    v.back().layer_scale = 1e-6;
    v.push_back({{"coatnet_rmlp_3_rw", {96, 192}, three, depths},
                 true,
                 false,
                 "depthwise",
                 kSilu});
    v.back().rel_pos = "mlp 512";
    v.back().layer_scale = 1e-6;
    return v;
  }();
  return variants;
}

json timm(const TimmVariant& variant) {
  json config = base(variant.sizes);
  json& conv = config["conv"];
  conv["pre_norm_act"] = variant.pre_norm_act;
  conv["expand_output"] = false;
  conv["output_bias"] = variant.output_bias;
  conv["stride"] = variant.stride;
  conv["pool"] = variant.pool;
  conv["se"] = variant.se;
  conv["act"] = "silu";
  json& transformer = config["transformer"];
  transformer["expand_first"] = false;
  transformer["shortcut_bias"] = variant.shortcut_bias;
  transformer["rel_pos"] = variant.rel_pos;
  transformer["pool"] = variant.pool;
  transformer["init_values"] = variant.layer_scale;
  transformer["norm"] = variant.norm;
  return config;
}

}  // namespace

json coatnetConfig(const std::string& name) {
  for (const Sizes& sizes : kPaper)
    if (name == sizes.name) return paper(sizes);
  // In timm, "coatnet_0_rw_224" is coatnet_0_rw at 224 x 224, and
  // "coatnet_0_224" is the paper's model.
  const auto [stem, size] = llvm::StringRef(name).rsplit('_');
  int64_t image = 0;
  if (size.getAsInteger(10, image) || image < 32) return nullptr;
  json config;
  for (const TimmVariant& variant : timmVariants())
    if (stem == variant.sizes.name) config = timm(variant);
  for (int i = 0; i < 6; ++i) {
    if (stem != "coatnet_" + std::to_string(i)) continue;
    Sizes sizes = kPaper[i];
    sizes.head_size = 32;
    config = paper(sizes);
  }
  if (!config.is_null()) config["img_size"] = image;
  return config;
}

std::vector<std::string> coatnetNames() {
  std::vector<std::string> names;
  for (const Sizes& sizes : kPaper) names.push_back(sizes.name);
  for (const TimmVariant& variant : timmVariants())
    names.push_back(std::string(variant.sizes.name) + "_224");
  return names;
}

}  // namespace partita::huggingface
