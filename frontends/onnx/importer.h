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
  // Sizes of symbolic dimensions by name: {"batch", 8}. A dimension without a
  // name is called by its input and index: {"x.0", 8}.
  std::map<std::string, int64_t> dims;
  // Complete shapes of inputs by name.
  std::map<std::string, std::vector<int64_t>> input_shapes;
  // Values of inputs by name. Such an input becomes a constant instead of an
  // argument.
  std::map<std::string, mlir::DenseElementsAttr> constant_inputs;
  // Globs over initializer names. They override the importer's choice of
  // trained and untrained initializers.
  std::vector<std::string> parameter_globs;
  std::vector<std::string> constant_globs;
  // Name of the device configuration (IR version 11) to import as a mesh and
  // shardings, "none", or empty for the only one.
  std::string configuration;
  // Record in each operation's location the tensors of the file that it
  // produces; see marks.h.
  bool mark_tensors = false;
};

// Import failures in a form for callers that react to them. Users read the
// diagnostics.
struct ImportReport {
  // Features of the model that nn lacks: "Loop", "Resize(antialias)", "type
  // STRING".
  std::vector<std::string> unsupported;
  // Inputs whose values determine shapes. Pass them in `constant_inputs`.
  std::vector<std::string> needs_constant_inputs;
};

// Returns null after emitting diagnostics. The context must have the nn
// dialect's reference models registered (nn::registerExternalModels), because
// the importer folds shape code with them.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string& path,
                                             const ImportOptions& options,
                                             mlir::MLIRContext* context,
                                             ImportReport* report = nullptr);

// The same from the file's bytes, which are read only during the call. `path`
// is the file's location: weights refer to it, and external data is beside it.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(
    std::string_view bytes, const std::string& path,
    const ImportOptions& options, mlir::MLIRContext* context,
    ImportReport* report = nullptr);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_IMPORTER_H_
