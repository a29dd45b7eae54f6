// Opens whatever a user calls a model.
#ifndef PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_
#define PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

struct ImportOptions {
  std::map<std::string, int64_t>
      dims;  // sizes of symbolic dimensions: batch=8, seq=128
  std::map<std::string, std::vector<int64_t>>
      input_shapes;  // ONNX only: whole shapes by input name
  // Sizes that are not given are small: a few rows, each dimension another
  // number. Otherwise, and with input_shapes, they are an error (ONNX) or the
  // family's default.
  bool small_dims = false;
  // ONNX only: which device configuration to read; "none", or empty: the only
  // one there is.
  std::string onnx_configuration;
  // ONNX only: locations say which tensor of the file an operation gives; see
  // frontends/onnx/marks.h.
  bool mark_tensors = false;
  uint64_t seed = 0;  // of weights that no file holds
  // Hugging Face and families only: which optional inputs the model takes;
  // absent: its default.
  std::optional<std::vector<std::string>> optional_inputs;
  // A folder of safetensors with the weights to take instead of the model's
  // own, by name: a checkpoint of a training run. Empty: none.
  std::string weights;
  // Hugging Face and families only, as the others say it themselves: batch
  // norms are to take the statistics of the batch, and what is dropped out is.
  bool training = false;
  // When training, in place of all probabilities of dropout that the model's
  // config has.
  std::optional<double> dropout;
};

// `model` is an .onnx file, a Hugging Face folder, an .mlir file, or the name
// of a family (coatnet-3). Null after diagnostics where it cannot be read.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const std::string& model,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context);

// "batch=8,seq=128" into a map; false and a message in `error` where an entry
// is not name=positive integer, or its name is there already.
bool parseDims(const std::string& text, std::map<std::string, int64_t>& dims,
               std::string& error);

// "x=1,8" into `shapes`, as parseDims; "x=" is a scalar.
bool parseInputShape(const std::string& text,
                     std::map<std::string, std::vector<int64_t>>& shapes,
                     std::string& error);

// "a,b" as its names; "none" is none.
std::vector<std::string> parseNames(const std::string& text);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_IMPORT_MODEL_H_
