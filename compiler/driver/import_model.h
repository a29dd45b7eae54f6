// Opens a model of any supported kind.
#ifndef PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_
#define PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontends/huggingface/huggingface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

struct ImportOptions {
  std::map<std::string, int64_t>
      dims;  // sizes of symbolic dimensions: batch=8, seq=128
  std::map<std::string, std::vector<int64_t>>
      input_shapes;  // ONNX and .pt2 only: whole shapes by input name
  // Sizes that are not given are small: a few rows, and a different number for
  // each dimension. If this is off, or input_shapes are given, a missing size
  // is an error (ONNX, .pt2) or the family's default.
  bool small_dims = false;
  // ONNX only: the device configuration to read, or "none". Empty: the only one
  // in the file.
  std::string onnx_configuration;
  // ONNX only: record in locations which tensor of the file an operation
  // computes; see frontends/onnx/marks.h.
  bool mark_tensors = false;
  // JAX only: leave out the program's own meshes and shardings.
  bool ignore_shardings = false;
  uint64_t seed = 0;  // of weights that are in no file
  // Hugging Face and families only: the optional inputs that the model takes.
  // Absent: its default.
  std::optional<std::vector<std::string>> optional_inputs;
  // Folder of safetensors whose weights replace the model's own, by name, e.g.
  // a checkpoint of a training run, or a folder of partita quantize, whose
  // integers stay integers. Empty: none.
  std::string weights;
  // Low-rank adapters beside weights: a PEFT folder, or what
  // frontends/lora/lora.h parses. Empty: none. Adapters that `weights` has
  // replace theirs.
  std::string lora;
  // Integers of 8 bits that the model simulates, as fake_quantize.h in
  // compiler/quantize parses them. Empty: none. Ranges that `weights` has
  // replace zeros when training; otherwise `weights` must have them.
  std::string fake_quantize;
  // A model of any kind whose outputs the model learns, and what
  // frontends/distillation/distillation.h parses. Empty: none, or its defaults.
  std::string teacher, distill;
  std::string teacher_weights;  // like `weights`, of the teacher
  // The output of the model that has logits. Empty: the first.
  std::string logits_output;
  // Hugging Face and families only: batch norms use batch statistics, and
  // dropout is active. Models in other formats say this themselves.
  bool training = false;
  // When training, replaces all dropout probabilities in the model's config.
  std::optional<double> dropout;
  // Hugging Face and families only: the model has a cache of keys and values.
  std::optional<huggingface::CacheOptions> cache;
};

// Opens `model`: an .onnx, .pt2 or .mlir file, a program of jax.export, a
// Hugging Face folder, or the name of a family (coatnet-3). Null after
// diagnostics if it cannot be read.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const std::string& model,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context);

// The folder that relative weight paths of `model` are relative to.
std::string folderOf(const std::string& model);

// Parses "batch=8,seq=128" into a map. Returns false and sets `error` if an
// entry is not name=positive integer, or its name is already in the map.
bool parseDims(const std::string& text, std::map<std::string, int64_t>& dims,
               std::string& error);

// Parses "x=1,8" into `shapes`, like parseDims; "x=" is a scalar.
bool parseInputShape(const std::string& text,
                     std::map<std::string, std::vector<int64_t>>& shapes,
                     std::string& error);

// Splits "a,b" into names; "none" gives no names.
std::vector<std::string> parseNames(const std::string& text);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_
