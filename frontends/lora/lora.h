// Low-rank adapters (Hu et al., 2021, "LoRA"): y = W x + alpha / rank * B A x,
// with A [rank, in] and B [out, rank] beside a weight W of a product.
#ifndef PARTITA_FRONTENDS_LORA_LORA_H_
#define PARTITA_FRONTENDS_LORA_LORA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::lora {

// Names of adapters, as globs: what is trained beside frozen weights.
inline constexpr char kAdapters[] = "*.lora_A.weight;*.lora_B.weight";

// True for the name of an adapter's parameter.
inline bool isAdapter(llvm::StringRef name) {
  return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight");
}

// The meaning of --lora, or of a PEFT folder's adapter_config.json.
struct Options {
  std::string folder;  // of PEFT; empty: adapters are new
  int64_t rank = 8;
  double alpha = 8;
  bool by_root = false;  // the scale is alpha / sqrt(rank): rsLoRA
  // Weights are stored [in, out], as GPT-2's: PEFT's fan_in_fan_out. Only
  // merging needs it, for square weights.
  bool in_by_out = false;
  // Globs of modules, whose parameters are MODULE.weight. A name without a
  // glob's characters stands for all modules whose last part it is. Empty with
  // a folder, whose tensors name the modules.
  std::vector<std::string> targets;

  double scale() const;
};

// Parses "rank=8; alpha=16; targets=*.q_proj,*.v_proj", or reads the folder of
// this name. InvalidArgument says what was expected and found.
absl::StatusOr<Options> ParseOptions(const std::string& text);

// Adds adapters to an imported model: parameters MODULE.lora_A.weight
// (uniform, as torch's linear layers) and MODULE.lora_B.weight (zeros), or the
// folder's. Layers that share a function but not their adapters get functions
// of their own. Fails, after a diagnostic, if a target matches no weight of a
// product, or a file's tensors do not fit the model.
mlir::LogicalResult addAdapters(mlir::ModuleOp module, const Options& options,
                                uint64_t seed);

}  // namespace partita::lora

#endif  // PARTITA_FRONTENDS_LORA_LORA_H_
