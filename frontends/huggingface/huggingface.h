// Imports transformers and timm models: a folder of config.json and
// safetensors, or a family by name.
//
// The result is a module in the nn dialect with one function per kind of layer
// and a flat @main. Weights are referenced in place (#nn.file), or made from a
// seed (#nn.init); only the headers of their files are read.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::huggingface {

struct HfOptions {
  // Sizes that a config leaves open: "batch", "seq", "decoder_seq" (t5),
  // "image" (families of vision models). Absent ones get a default (1, at most
  // 128, seq, the config's); unknown ones are an error.
  std::map<std::string, int64_t> dims;
  // Absent sizes are small, and differ: batch 3, seq 8, decoder_seq 6, and of
  // an image twice what the model reduces it by, unless weights fix its size.
  bool small_dims = false;
  // Without, weights come from the seed even where the folder has them.
  bool with_weights = true;
  uint64_t seed = 0;
  // Which of a model's optional inputs it takes: "attention_mask",
  // "token_type_ids". Absent: the model's default, which is attention_mask for
  // bert and none for the others.
  std::optional<std::vector<std::string>> optional_inputs;
  // Batch norms take the statistics of the batch and return the running ones;
  // what the config drops is dropped, by an input "seed".
  bool training = false;
  // In place of all probabilities of dropout in the config; from 0 to below 1.
  std::optional<double> dropout;
};

// Imports a folder. Null after an error, which has been reported as a
// diagnostic; a folder without weights is imported with seeded ones and a
// remark. Result 0 of @main is named "y": logits, an encoder's last hidden
// state, or the embedding of a sentence-transformers folder.
mlir::OwningOpRef<mlir::ModuleOp> importHuggingFace(const std::string& folder,
                                                    const HfOptions& options,
                                                    mlir::MLIRContext* context);

// Imports a model by the name of its architecture ("gpt2-xl", "coatnet-3",
// "vit-b-16") with seeded weights.
mlir::OwningOpRef<mlir::ModuleOp> importFamily(const std::string& name,
                                               const HfOptions& options,
                                               mlir::MLIRContext* context);

// Imports a model by the text of a config.json, with seeded weights; `name`
// stands for it in diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> importConfig(const std::string& text,
                                               const std::string& name,
                                               const HfOptions& options,
                                               mlir::MLIRContext* context);

// Takes the f32 weights of an imported model, by any frontend, from a folder of
// safetensors instead, each by its name: a checkpoint of a training run. Fails,
// after a diagnostic, where names or shapes are not the same.
mlir::LogicalResult takeWeights(mlir::ModuleOp module,
                                const std::string& folder);

// All names that importFamily knows, in the order of a table for people.
std::vector<std::string> familyNames();
// Whether `name` is one of them.
bool isFamily(const std::string& name);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_HUGGINGFACE_H_
