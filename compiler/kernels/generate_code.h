// From kernel functions to machine code.
#ifndef PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
#define PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_

#include <string>

#include "compiler/kernels/object.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Generates every function marked `exec.kernel`, writes what each launch needs
// to know onto the launches, and returns an object file with one symbol per
// kernel (empty if there is none), for linkSharedObject.
mlir::FailureOr<std::string> generateCode(mlir::ModuleOp module,
                                          const ObjectOptions& options);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
