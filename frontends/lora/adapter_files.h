// Adapters in safetensors files, and the writing of such files.
#ifndef PARTITA_FRONTENDS_LORA_ADAPTER_FILES_H_
#define PARTITA_FRONTENDS_LORA_ADAPTER_FILES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/safetensors.h"

namespace partita::lora {

inline constexpr char kDown[] = ".lora_A.weight", kUp[] = ".lora_B.weight";
inline constexpr char kPeft[] = "base_model.model.";

std::string ShapeText(const std::vector<int64_t>& shape);

// The files of weights in a folder, in the order of their names: model*,
// weights and adapter_model*.safetensors.
absl::StatusOr<std::vector<base::SafetensorsFile>> OpenFolder(
    const std::string& folder);

struct Tensor {
  const base::SafetensorsFile* file = nullptr;
  const base::SafetensorsEntry* entry = nullptr;
};

// A [rank, in] and B [out, rank] of a module, both floats.
struct Pair {
  Tensor down, up;
  int64_t rank() const { return down.entry->shape[0]; }
  int64_t in() const { return down.entry->shape[1]; }
  int64_t out() const { return up.entry->shape[0]; }
};

// By module, without PEFT's prefix. `only`: refuse tensors of another kind.
absl::StatusOr<std::map<std::string, Pair>> PairsOf(
    const std::vector<base::SafetensorsFile>& files, const std::string& folder,
    bool only);

struct Part {
  std::string name;
  const base::SafetensorsEntry* entry = nullptr;
};
// The bytes before the tensors of a file with these parts, in this order.
std::string HeaderOf(const std::vector<Part>& parts);

// Makes a new folder, and removes it again if `fill` fails. Refuses a path that
// exists.
absl::Status FillNewFolder(const std::string& path,
                           const std::function<absl::Status()>& fill);

}  // namespace partita::lora

#endif  // PARTITA_FRONTENDS_LORA_ADAPTER_FILES_H_
