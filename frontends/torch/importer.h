// Imports a program of torch.export (.pt2) as an nn module with static shapes.
#ifndef PARTITA_FRONTENDS_TORCH_IMPORTER_H_
#define PARTITA_FRONTENDS_TORCH_IMPORTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/torch/symbols.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::torch {

struct ImportOptions {
  // Sizes of symbolic dimensions by name; see OpenDim in symbols.h.
  std::map<std::string, int64_t> dims;
  // Complete shapes of inputs by name.
  std::map<std::string, std::vector<int64_t>> input_shapes;
};

// Returns null after emitting diagnostics. The context must have the nn
// dialect's reference models registered (nn::registerExternalModels), because
// the importer folds shape code with them.
mlir::OwningOpRef<mlir::ModuleOp> importTorch(const std::string& path,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context);

// The same from the file's bytes, which are read only during the call. Weights
// refer to `path`.
mlir::OwningOpRef<mlir::ModuleOp> importTorchBytes(std::string_view bytes,
                                                   const std::string& path,
                                                   const ImportOptions& options,
                                                   mlir::MLIRContext* context);

// The open dimensions of a file; none if it cannot be read.
std::vector<OpenDim> openDims(const std::string& path);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_IMPORTER_H_
