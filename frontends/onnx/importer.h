// Imports an ONNX model as an nn module with static shapes.
#ifndef PARTITA_FRONTENDS_ONNX_IMPORTER_H_
#define PARTITA_FRONTENDS_ONNX_IMPORTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::onnx {

struct ImportOptions {
  // Sizes of symbolic dimensions by name: {"batch", 8}; one without a name is
  // called by its input and place: {"x.0", 8}.
  std::map<std::string, int64_t> dims;
  // Whole shapes of inputs by name.
  std::map<std::string, std::vector<int64_t>> input_shapes;
  // Values of inputs by name: such an input is a constant, no argument.
  std::map<std::string, mlir::DenseElementsAttr> constant_inputs;
  // Globs over initializers' names that settle what is trained and what is not,
  // against the importer's own guess.
  std::vector<std::string> parameter_globs;
  std::vector<std::string> constant_globs;
  // Which device configuration of the model (IR version 11) to read as a mesh
  // and shardings: its name, "none", or nothing, which is the only one.
  std::string configuration;
  // Whether operations say in their locations which tensors of the file they
  // give; see marks.h.
  bool mark_tensors = false;
};

// What went wrong, for callers that act on it (the user reads the diagnostics).
struct ImportReport {
  // What the model needs and nn lacks: "Loop", "Resize(antialias)", "type
  // STRING".
  std::vector<std::string> unsupported;
  // Inputs whose values shapes depend on: give them in `constant_inputs`.
  std::vector<std::string> needs_constant_inputs;
};

// Null after emitting diagnostics. The context must have the nn dialect's
// reference models registered (nn::registerExternalModels): the importer folds
// shape code with them.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string& path,
                                             const ImportOptions& options,
                                             mlir::MLIRContext* context,
                                             ImportReport* report = nullptr);

// The same from the file's bytes, which are read only during the call; `path`
// is where they lie: weights refer to it, and external data lies beside it.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(
    std::string_view bytes, const std::string& path,
    const ImportOptions& options, mlir::MLIRContext* context,
    ImportReport* report = nullptr);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_IMPORTER_H_
