// From kernel functions to code of a target.
#ifndef PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
#define PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_

#include <string>

#include "compiler/kernels/object.h"
#include "compiler/kernels/ptx.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Generates every function marked `exec.kernel`, writes what each launch needs
// to know onto the launches, and returns an object file with one symbol per
// kernel (empty if there is none), for linkSharedObject.
mlir::FailureOr<std::string> generateObject(mlir::ModuleOp module,
                                            const ObjectOptions& options);

// The same as PTX, which is complete.
mlir::FailureOr<std::string> generatePtx(mlir::ModuleOp module,
                                         const PtxOptions& options);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
