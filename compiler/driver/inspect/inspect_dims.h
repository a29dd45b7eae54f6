// Meanings of the dimensions of a model.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_DIMS_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_DIMS_H_

#include <string>

#include "compiler/sharding/name_dimensions.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// The names that dividing the module would use, found on a copy of it.
// `corrections` is as in nameDimensions. Finds nothing if @main has no body.
mlir::FailureOr<sharding::NamingReport> inspectDims(
    mlir::ModuleOp module, const std::string& corrections);

llvm::json::Object toJson(const sharding::NamingReport& report);

// A table for people.
void printDims(const sharding::NamingReport& report, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_DIMS_H_
