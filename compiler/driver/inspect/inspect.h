// Describes a model or an artifact.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_H_

#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// Inputs, outputs, parameters (count, elements, bytes), layers and operations
// by name.
llvm::json::Value inspectModel(mlir::ModuleOp module);

// Ports, parameters, functions, kernels, memory, and the compiler's summary of
// the model, which inspect_page.h prints on one page.
llvm::json::Value inspectArtifact(const program::Artifact& artifact);

// Prints all of such a value as a table for people.
void printInspection(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_H_
