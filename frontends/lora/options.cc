// Reads --lora, and adapter_config.json as PEFT writes it.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontends/lora/lora.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"
#include "runtime/base/checked_json.h"
#include "runtime/base/mapped_file.h"

namespace partita::lora {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using llvm::StringRef;
using Json = nlohmann::json;

constexpr char kConfig[] = "adapter_config.json";
constexpr char kExample[] = "\"rank=8; alpha=16; targets=*.q_proj,*.v_proj\"";
constexpr int64_t kMostRank = 1 << 16;

Status refuse(const std::string& expected, const std::string& found) {
  return InvalidArgumentError("--lora: expected " + expected + ", found '" +
                              found + "'");
}

Status refuseConfig(const std::string& path, const std::string& key,
                    const std::string& expected, const std::string& found) {
  return InvalidArgumentError(path + ": " + key + ": expected " + expected +
                              ", found " + found);
}

// The value of a key; null where the file has none.
Json valueOf(const Json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() ? Json() : *found;
}

// True for null, false, 0, and empty lists, objects and texts.
bool isNothing(const Json& value) {
  return value.is_null() || value == false || value == 0 ||
         ((value.is_array() || value.is_object()) && value.empty()) ||
         value == "" || value == "none";
}

StatusOr<Options> readFolder(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kConfig).string();
  StatusOr<base::MappedFile> file = base::MappedFile::Open(path);
  if (!file.ok()) return file.status();
  base::JsonError error;
  const Json config = base::ParseJson(file->bytes(), error);
  if (config.is_discarded())
    return InvalidArgumentError(path + ": expected JSON, found " + error.found);
  if (!config.is_object())
    return InvalidArgumentError(path + ": expected an object, found " +
                                config.type_name());
  if (const Json type = valueOf(config, "peft_type"); type != "LORA")
    return refuseConfig(path, "peft_type", "\"LORA\"", type.dump());
  // Settings that change results and are not known here.
  for (const char* key :
       {"use_dora", "bias", "modules_to_save", "rank_pattern", "alpha_pattern",
        "target_parameters", "layer_replication", "use_bdlora",
        "trainable_token_indices", "alora_invocation_tokens", "use_qalora",
        "lora_bias"})
    if (const Json value = valueOf(config, key); !isNothing(value))
      return refuseConfig(path, key, "none (plain adapters of products)",
                          value.dump());
  // Other ways to begin change the weights beside the adapters as well.
  if (const Json begin = valueOf(config, "init_lora_weights");
      !begin.is_null() && !begin.is_boolean() && begin != "gaussian")
    return refuseConfig(path, "init_lora_weights",
                        "true, false or \"gaussian\"", begin.dump());
  Options options;
  options.folder = folder;
  const Json rank = valueOf(config, "r");
  if (!rank.is_number_integer() || rank < 1 || rank > kMostRank)
    return refuseConfig(path, "r", "a rank of 1 to 65536", rank.dump());
  options.rank = rank.get<int64_t>();
  const Json alpha = valueOf(config, "lora_alpha");
  if (!alpha.is_number() || !std::isfinite(alpha.get<double>()))
    return refuseConfig(path, "lora_alpha", "a number", alpha.dump());
  options.alpha = alpha.get<double>();
  options.by_root = valueOf(config, "use_rslora") == true;
  options.in_by_out = valueOf(config, "fan_in_fan_out") == true;
  return options;
}

Status take(StringRef key, StringRef value, Options& options) {
  if (key == "rank") {
    if (value.getAsInteger(10, options.rank) || options.rank < 1 ||
        options.rank > kMostRank)
      return refuse("rank=N with N from 1 to 65536", value.str());
    return absl::OkStatus();
  }
  if (key == "alpha") {
    if (value.getAsDouble(options.alpha) || !std::isfinite(options.alpha))
      return refuse("alpha=X with a number X", value.str());
    return absl::OkStatus();
  }
  if (key == "rslora") {
    if (value != "y" && value != "n")
      return refuse("rslora=y or n", value.str());
    options.by_root = value == "y";
    return absl::OkStatus();
  }
  if (key != "targets")
    return refuse(
        "rank=, alpha=, rslora= or targets=, separated by ';', as in " +
            std::string(kExample) + ", or a PEFT folder",
        key.str());
  llvm::SmallVector<StringRef> targets;
  value.split(targets, ',', -1, /*KeepEmpty=*/false);
  for (StringRef target : targets) {
    auto glob = llvm::GlobPattern::create(target.trim());
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return refuse("targets= with patterns of modules", target.str());
    }
    options.targets.push_back(target.trim().str());
  }
  return absl::OkStatus();
}

}  // namespace

double Options::scale() const {
  const double size = static_cast<double>(rank);
  return alpha / (by_root ? std::sqrt(size) : size);
}

StatusOr<Options> ParseOptions(const std::string& text) {
  std::error_code error;
  if (std::filesystem::is_directory(text, error)) return readFolder(text);
  Options options;
  bool has_alpha = false;
  llvm::SmallVector<StringRef> fields;
  StringRef(text).split(fields, ';', -1, /*KeepEmpty=*/false);
  std::vector<std::string> named;
  for (StringRef field : fields) {
    if (field.trim().empty()) continue;
    if (!field.contains('='))
      return refuse("NAME=VALUE, as in " + std::string(kExample) +
                        ", or a PEFT folder, which has " + kConfig,
                    field.trim().str());
    const auto [key, value] = field.split('=');
    if (llvm::is_contained(named, key.trim()))
      return refuse("each name once", key.trim().str());
    named.push_back(key.trim().str());
    if (Status status = take(key.trim(), value.trim(), options); !status.ok())
      return status;
    has_alpha |= key.trim() == "alpha";
  }
  if (options.targets.empty())
    return refuse("targets=, the modules that get adapters, as in " +
                      std::string(kExample) + ", or a PEFT folder",
                  text);
  // PEFT's default is 8 for both.
  if (!has_alpha) options.alpha = static_cast<double>(options.rank);
  return options;
}

}  // namespace partita::lora
