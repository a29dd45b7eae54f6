// Writes adapter_config.json and adapter_model.safetensors.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontends/lora/adapter_files.h"
#include "frontends/lora/peft_folder.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/checked_json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace partita::lora {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::StatusOr;
using base::SafetensorsFile;
using Pairs = std::map<std::string, Pair>;

// True for families that store weights [in, out]: the config says so where all
// weights are square.
bool storesInByOut(const std::string& folder) {
  const auto file =
      base::MappedFile::Open((fs::path(folder) / "config.json").string());
  if (!file.ok()) return false;
  base::JsonError error;
  const nlohmann::json config = base::ParseJson(file->bytes(), error);
  return config.is_object() && config.contains("model_type") &&
         config["model_type"] == "gpt2";
}

bool isInByOut(const std::vector<SafetensorsFile>& files, const Pairs& pairs,
               const std::string& folder) {
  for (const SafetensorsFile& file : files)
    for (const auto& [module, pair] : pairs) {
      const auto weight = file.header().tensors.find(module + ".weight");
      if (weight == file.header().tensors.end() || pair.in() == pair.out() ||
          weight->second.shape.size() != 2)
        continue;
      return weight->second.shape[0] == pair.in();
    }
  return storesInByOut(folder);
}

}  // namespace

StatusOr<Saved> SaveAdapters(const std::string& checkpoint, double alpha,
                             bool by_root, const std::string& output) {
  if (!std::isfinite(alpha))
    return InvalidArgumentError("--alpha: expected a number, found " +
                                std::to_string(alpha));
  PARTITA_ASSIGN_OR_RETURN(const auto files, OpenFolder(checkpoint));
  PARTITA_ASSIGN_OR_RETURN(const Pairs pairs,
                           PairsOf(files, checkpoint, /*only=*/false));
  const int64_t rank = pairs.begin()->second.rank();
  std::vector<Part> parts;
  std::vector<std::string> modules;
  for (const auto& [module, pair] : pairs) {
    if (pair.rank() != rank)
      return InvalidArgumentError(
          checkpoint + ": " + module + ": expected the rank of " +
          pairs.begin()->first + ", " + std::to_string(rank) + ", found " +
          std::to_string(pair.rank()));
    modules.push_back(module);
    parts.push_back({kPeft + module + kDown, pair.down.entry});
    parts.push_back({kPeft + module + kUp, pair.up.entry});
  }
  const nlohmann::json config = {
      {"peft_type", "LORA"},
      {"r", rank},
      {"lora_alpha", alpha},
      {"lora_dropout", 0.0},
      {"use_rslora", by_root},
      {"fan_in_fan_out", isInByOut(files, pairs, checkpoint)},
      {"bias", "none"},
      {"target_modules", modules},
      {"base_model_name_or_path", nullptr},
      {"task_type", nullptr},
      {"inference_mode", true}};
  Saved saved;
  saved.modules = static_cast<int64_t>(pairs.size());
  PARTITA_RETURN_IF_ERROR(FillNewFolder(output, [&]() -> absl::Status {
    const fs::path folder(output);
    PARTITA_ASSIGN_OR_RETURN(
        auto file, base::AtomicFile::Create(
                       (folder / "adapter_model.safetensors").string()));
    PARTITA_RETURN_IF_ERROR(file->Append(HeaderOf(parts)));
    for (const auto& [module, pair] : pairs)
      for (const Tensor& tensor : {pair.down, pair.up})
        PARTITA_RETURN_IF_ERROR(
            file->Append(tensor.file->BytesOf(*tensor.entry)));
    saved.bytes = file->size();
    PARTITA_RETURN_IF_ERROR(file->Commit());
    return base::WriteFileAtomically((folder / "adapter_config.json").string(),
                                     config.dump(2) + "\n");
  }));
  return saved;
}

}  // namespace partita::lora
