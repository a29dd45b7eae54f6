// Imports transformers and timm models: a folder with config.json and
// safetensors, or a family by name.
//
// The result is a module in the nn dialect with one function per kind of layer
// and a flat @main. Weights are referenced in their files (#nn.file) or made
// from a seed (#nn.init). The importer reads only the headers of weight files.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::huggingface {

// A model that generates text, with a cache of keys and values.
struct CacheOptions {
  // The prompts of some rows, or one token of every row.
  enum class Step { kPrompts, kTokens } step = Step::kTokens;
  int64_t rows = 1;    // texts in the cache
  int64_t length = 1;  // tokens of a text
  // Keys and values are integers of 8 bits, with a scale for each head and
  // token; else f32.
  bool is_int8 = false;
};

struct HfOptions {
  // Sizes that a config leaves open: "batch", "seq", "decoder_seq" (T5),
  // "image" (families of vision models). Defaults: batch 1, seq at most 128,
  // decoder_seq the value of seq, image the config's size. Unknown names are an
  // error.
  std::map<std::string, int64_t> dims;
  // Use small, distinct default sizes: batch 3, seq 8, decoder_seq 6, and image
  // twice the model's total downsampling unless weights fix its size.
  bool small_dims = false;
  // If false, weights come from the seed even if the folder has weights.
  bool with_weights = true;
  uint64_t seed = 0;
  // Optional inputs to include: "attention_mask", "token_type_ids". If absent:
  // attention_mask for BERT, none for other models.
  std::optional<std::vector<std::string>> optional_inputs;
  // Batch norms use the statistics of the batch and return the running ones.
  // The config's dropouts are active, with an input "seed".
  bool training = false;
  // Replaces all dropout probabilities of the config; in [0, 1).
  std::optional<double> dropout;
  // Decoders only: with a cache, whose tensors are states that @main updates.
  // For prompts, inputs are `input_ids` [batch, seq], `slots` [batch] with
  // their rows in the cache and `lengths` [batch]; for tokens, `input_ids`
  // [rows, 1] and `positions` [rows]. A prompt with a slot outside the cache
  // and a token at a position outside it leave the cache unchanged. Result `y`
  // has the logits of each row's last token, [.., 1, vocabulary].
  std::optional<CacheOptions> cache;
};

// Imports a folder. Returns null after an error, which has been reported as a
// diagnostic. A folder without weights gets seeded ones, with a remark. Result
// 0 of @main is named "y": logits, an encoder's last hidden state, or the
// embedding of a sentence-transformers folder.
mlir::OwningOpRef<mlir::ModuleOp> importHuggingFace(const std::string& folder,
                                                    const HfOptions& options,
                                                    mlir::MLIRContext* context);

// Imports a model with seeded weights by the name of its architecture
// ("gpt2-xl", "coatnet-3", "vit-b-16").
mlir::OwningOpRef<mlir::ModuleOp> importFamily(const std::string& name,
                                               const HfOptions& options,
                                               mlir::MLIRContext* context);

// Imports a model with seeded weights from the text of a config.json. `name` is
// the name in diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> importConfig(const std::string& text,
                                               const std::string& name,
                                               const HfOptions& options,
                                               mlir::MLIRContext* context);

// Replaces the f32 weights of a model imported by any frontend with those in a
// folder of safetensors, such as a training checkpoint. Weights match by name.
// Fails, after a diagnostic, if names or shapes differ. A weight for whose name
// `may_lack` is true stays as it is if the folder lacks it. The folder may have
// more tensors if a glob pattern of `others` matches their names.
using MayLack = llvm::function_ref<bool(llvm::StringRef)>;
mlir::LogicalResult takeWeights(mlir::ModuleOp module,
                                const std::string& folder,
                                MayLack may_lack = nullptr,
                                llvm::ArrayRef<llvm::StringRef> others = {});

// All names that importFamily accepts, in display order.
std::vector<std::string> familyNames();
// True if importFamily accepts `name`.
bool isFamily(const std::string& name);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_
