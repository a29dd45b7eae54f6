// Checks that a program can be compiled from a module.
#ifndef PARTITA_COMPILER_DRIVER_CHECK_MODEL_H_
#define PARTITA_COMPILER_DRIVER_CHECK_MODEL_H_

#include <map>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::driver {

// Refuses a module that no program can express. Reports every problem once,
// where it first occurs. A phase that fails on a model accepted here has a bug.
mlir::LogicalResult checkModel(mlir::ModuleOp module);

// Types of the module that no program can hold: element types, or types that
// are not tensors of static shape. Each comes with the place where it first
// occurs. checkModel refuses a module that has any.
std::map<std::string, mlir::Location> unsupportedTypes(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CHECK_MODEL_H_
