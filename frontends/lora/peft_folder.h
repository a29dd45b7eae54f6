// Folders of adapters as PEFT reads and writes them: adapter_config.json and
// adapter_model.safetensors.
#ifndef PARTITA_FRONTENDS_LORA_PEFT_FOLDER_H_
#define PARTITA_FRONTENDS_LORA_PEFT_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace partita::lora {

struct Saved {
  int64_t modules = 0;  // with an adapter
  int64_t bytes = 0;    // written
};

// Writes the adapters of a checkpoint, or of any folder of safetensors whose
// tensors end with .lora_A.weight and .lora_B.weight, to a new folder for PEFT.
// The rank is that of the tensors.
absl::StatusOr<Saved> SaveAdapters(const std::string& checkpoint, double alpha,
                                   bool by_root, const std::string& output);

// Writes a Hugging Face folder to a new folder, with the adapters of a PEFT
// folder added to its weights: W + scale * B A, computed in f32 and stored in
// the type of W. Other files are copied.
absl::StatusOr<Saved> MergeAdapters(const std::string& model,
                                    const std::string& adapter,
                                    const std::string& output);

}  // namespace partita::lora

#endif  // PARTITA_FRONTENDS_LORA_PEFT_FOLDER_H_
