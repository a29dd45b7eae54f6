// From a folder or a name to a config, the weights, and the model of the
// config.
#include <filesystem>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/config.h"
#include "frontends/huggingface/families.h"
#include "frontends/huggingface/huggingface.h"
#include "frontends/huggingface/models.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::huggingface {
namespace {

namespace fs = std::filesystem;
using llvm::StringRef;
using nlohmann::json;

struct ModelKind {
  const char* type;  // the config's "model_type"
  OwningModule (*build)(ModelSource&);
  bool generates = true;  // text, with a cache
};
constexpr ModelKind kModels[] = {
    {"gpt2", buildGpt2},
    {"bert", buildBert, /*generates=*/false},
    {"vit", buildVit, /*generates=*/false},
    {"vmoe", buildVmoe, /*generates=*/false},
    {"t5", buildT5},
    {"llama", buildLlama},
    {"mistral", buildLlama},
    {"qwen3", buildQwen3},
    {"mixtral", buildMixtral},
    {"qwen3_moe", buildQwen3Moe},
    {"deepseek_v3", buildDeepseekV3},
    {"switch_transformers", buildSwitchTransformers},
};

bool exists(const std::string& folder, const char* file) {
  std::error_code error;
  return fs::exists(fs::path(folder) / file, error);
}

OwningModule build(ModelSource source) {
  Config& config = source.config;
  const std::string type = config.text("model_type", "");
  std::vector<std::string> generating;
  for (const ModelKind& kind : kModels)
    if (kind.generates) generating.push_back(kind.type);
  for (const ModelKind& kind : kModels)
    if (type == kind.type && (kind.generates || !source.options.cache))
      return kind.build(source);
  if (source.options.cache) {
    mlir::emitError(config.loc())
        << "'model_type': expected a model that generates text, one of "
        << llvm::join(generating, ", ") << "; found '" << type << "'";
    return nullptr;
  }
  if (type.empty() && config.values().contains("embed_dim"))
    return buildCoatnet(source);
  std::vector<std::string> known;
  for (const ModelKind& kind : kModels) known.push_back(kind.type);
  const std::string found = type.empty() ? "no 'model_type'" : "'" + type + "'";
  mlir::emitError(config.loc())
      << "'model_type': expected one of " << llvm::join(known, ", ")
      << ", found " << found;
  return nullptr;
}

// timm's configs name an architecture without sizes. A config with sizes stays
// unchanged.
mlir::FailureOr<json> expandTimm(json config, mlir::Location loc) {
  if (config.contains("model_type") || config.contains("embed_dim") ||
      !config.contains("architecture"))
    return config;
  Config reader(config, loc);
  const std::string name = reader.text("architecture", "");
  json full = coatnetConfig(name);
  if (full.is_null())
    return mlir::emitError(loc)
           << "'architecture': expected one of "
           << llvm::join(coatnetNames(), ", ") << ", found '" << name << "'";
  full["num_classes"] = reader.size("num_classes", 1000);
  if (reader.has("pretrained_cfg") && config["pretrained_cfg"].is_object()) {
    Config pretrained(config["pretrained_cfg"], loc, "pretrained_cfg.");
    if (pretrained.has("input_size")) {
      const std::vector<int64_t> size = pretrained.sizes("input_size");
      if (size.size() != 3 || size[1] != size[2])
        pretrained.complain(
            "'pretrained_cfg.input_size': expected channels and two equal "
            "sizes");
      else
        full["in_chans"] = size[0], full["img_size"] = size[1];
    }
    reader.absorb(pretrained);
  }
  if (failed(reader.finish())) return mlir::failure();
  return full;
}

// A sentence-transformers folder lists its modules: the encoder, pooling, and
// optionally normalisation.
mlir::FailureOr<std::optional<SentencePooling>> readPooling(
    const std::string& folder, mlir::MLIRContext* context) {
  const std::string pooling_config = "1_Pooling/config.json";
  if (!exists(folder, "modules.json") ||
      !exists(folder, pooling_config.c_str()))
    return std::optional<SentencePooling>();
  const std::string path = (fs::path(folder) / pooling_config).string();
  const mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  mlir::FailureOr<json> values = readJsonFile(path, context);
  if (failed(values)) return mlir::failure();
  Config config(*values, loc);
  SentencePooling pooling;
  pooling.first_token = config.flag("pooling_mode_cls_token", false);
  if (pooling.first_token ==
      config.flag("pooling_mode_mean_tokens", !pooling.first_token))
    config.complain(
        "expected either 'pooling_mode_cls_token' or "
        "'pooling_mode_mean_tokens'");
  for (const char* mode :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
        "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
    if (config.flag(mode, false))
      config.complain(std::string("'") + mode +
                      "': expected false, found true");
  if (failed(config.finish())) return mlir::failure();
  return std::optional<SentencePooling>(pooling);
}

// modules.json is a list. Finds the modules by type and refuses unsupported
// ones.
mlir::LogicalResult checkModules(const std::string& folder,
                                 SentencePooling& pooling,
                                 mlir::MLIRContext* context) {
  const std::string path = (fs::path(folder) / "modules.json").string();
  mlir::FailureOr<json> modules =
      readJsonFile(path, context, json::value_t::array);
  if (failed(modules)) return mlir::failure();
  const mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  for (const json& module : *modules) {
    const bool typed = module.is_object() && module.contains("type") &&
                       module["type"].is_string();
    const std::string type = typed ? module["type"].get<std::string>() : "";
    const StringRef last = StringRef(type).rsplit('.').second;
    if (last == "Normalize")
      pooling.normalize = true;
    else if (last != "Transformer" && last != "Pooling")
      return mlir::emitError(loc) << "expected modules of type Transformer, "
                                     "Pooling and Normalize, found '"
                                  << type << "'";
  }
  return mlir::success();
}

}  // namespace

OwningModule importHuggingFace(const std::string& folder,
                               const HfOptions& options,
                               mlir::MLIRContext* context) {
  context->loadDialect<nn::NNDialect>();
  std::error_code error;
  const mlir::Location folder_loc =
      mlir::FileLineColLoc::get(context, folder, 0, 0);
  if (!fs::is_directory(folder, error) || !exists(folder, "config.json")) {
    mlir::emitError(folder_loc)
        << "expected a folder with config.json, found "
        << (fs::is_directory(folder, error) ? "a folder without one"
            : fs::exists(folder, error)     ? "a file"
                                            : "nothing");
    return nullptr;
  }
  const std::string path = (fs::path(folder) / "config.json").string();
  const mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  mlir::FailureOr<json> values = readJsonFile(path, context);
  if (failed(values)) return nullptr;
  values = expandTimm(std::move(*values), loc);
  if (failed(values)) return nullptr;

  mlir::FailureOr<Weights> weights = Weights::seeded(options.seed);
  const bool none = !Weights::exist(folder);
  if (options.with_weights && !none) {
    weights = Weights::open(folder, context);
    if (failed(weights)) return nullptr;
  }
  mlir::FailureOr<std::optional<SentencePooling>> pooling =
      readPooling(folder, context);
  if (failed(pooling)) return nullptr;
  if (*pooling && failed(checkModules(folder, **pooling, context)))
    return nullptr;
  Config config(*values, loc);
  OwningModule module = build({context, config, *weights, options, *pooling});
  if (module && options.with_weights && none)
    mlir::emitRemark(loc) << "no model.safetensors, weights.safetensors or "
                             "model.safetensors.index.json here: weights "
                             "are made from seed "
                          << options.seed;
  return module;
}

// The first name of each kind; the full list has dozens.
static std::string kindsOfFamilies() {
  const auto kindOf = [](llvm::StringRef name) {
    return name.take_while([](char c) { return llvm::isAlpha(c); });
  };
  llvm::SmallVector<std::string> firsts;
  for (const std::string& name : familyNames())
    if (firsts.empty() || kindOf(firsts.back()) != kindOf(name))
      firsts.push_back(name);
  return llvm::join(firsts, ", ");
}

// Returns "; did you mean 'gpt2'?" if a name differs in few letters.
static std::string suggestFamily(llvm::StringRef found) {
  std::string best;
  unsigned least =
      std::max<unsigned>(1, std::min<size_t>(4, 2 * found.size() / 3));
  for (const std::string& name : familyNames()) {
    const unsigned distance =
        found.edit_distance(name, /*AllowReplacements=*/true, least);
    if (distance > least || (distance == least && !best.empty())) continue;
    best = name;
    least = distance;
  }
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

static OwningModule buildSeeded(const json& values, mlir::Location loc,
                                const HfOptions& options) {
  Config config(values, loc);
  Weights weights = Weights::seeded(options.seed);
  return build({loc.getContext(), config, weights, options, std::nullopt});
}

OwningModule importFamily(const std::string& name, const HfOptions& options,
                          mlir::MLIRContext* context) {
  context->loadDialect<nn::NNDialect>();
  const mlir::Location loc =
      mlir::NameLoc::get(mlir::StringAttr::get(context, name));
  const json values = familyConfig(name);
  if (values.is_null()) {
    mlir::emitError(loc) << "expected a file, a folder, or the name of a "
                            "model, as "
                         << kindsOfFamilies() << "; found '" << name << "'"
                         << suggestFamily(name);
    return nullptr;
  }
  return buildSeeded(values, loc, options);
}

OwningModule importConfig(const std::string& text, const std::string& name,
                          const HfOptions& options,
                          mlir::MLIRContext* context) {
  context->loadDialect<nn::NNDialect>();
  const mlir::Location loc =
      mlir::NameLoc::get(mlir::StringAttr::get(context, name));
  const json values = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!values.is_object()) {
    mlir::emitError(loc) << "expected the text of a config.json, found other";
    return nullptr;
  }
  return buildSeeded(values, loc, options);
}

}  // namespace partita::huggingface
