// Writes an ONNX model again, with its division as device annotations.
#ifndef PARTITA_COMPILER_DRIVER_ANNOTATE_H_
#define PARTITA_COMPILER_DRIVER_ANNOTATE_H_

#include <optional>
#include <string>

#include "compiler/driver/import_model.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/MLIRContext.h"

namespace partita::driver {

struct AnnotateOptions {
  std::string model;  // path of the .onnx file
  ImportOptions import;
  // How to divide it; none: as its own annotations say.
  std::optional<plan::Plan> plan;
  std::string configuration = "partita";  // name of the one that is written
  std::string output;                     // path of the .onnx file to write
};

// Divides the model as compiling would, layers not outlined, and writes the
// file again with a configuration of that name: on each node the shardings of
// those of its tensors that the divided model still has. What became part of
// larger operations, and shards that are not runs of rows, are left out and
// counted. Fails after diagnostics; nothing is written then, and `fault`, where
// given, says whose fault it is.
mlir::FailureOr<llvm::json::Value> annotateModel(const AnnotateOptions& options,
                                                 mlir::MLIRContext* context,
                                                 Fault* fault = nullptr);
void printAnnotation(const llvm::json::Value& facts, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_ANNOTATE_H_
