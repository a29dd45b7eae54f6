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
  // The division to write. Without a plan, the model's own annotations apply.
  std::optional<plan::Plan> plan;
  std::string configuration = "partita";  // name of the configuration to write
  std::string output;                     // path of the .onnx file to write
};

// Divides the model as compiling would, but without outlining layers. Then
// writes the file again with the configuration `options.configuration`, which
// gives the shardings of each node's tensors. Tensors that became part of
// larger operations, and shards that are not contiguous rows, are left out and
// counted. Fails after diagnostics and then writes nothing; `fault`, if given,
// says whose fault it is.
mlir::FailureOr<llvm::json::Value> annotateModel(const AnnotateOptions& options,
                                                 mlir::MLIRContext* context,
                                                 Fault* fault = nullptr);
void printAnnotation(const llvm::json::Value& facts, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_ANNOTATE_H_
