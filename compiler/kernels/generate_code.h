// From kernel functions to code of a target.
#ifndef PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
#define PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_

#include <string>

#include "compiler/kernels/object.h"
#include "compiler/kernels/ptx.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Generates every function marked `exec.kernel`, whose mark becomes the name of
// its code: kernels that differ in their sizes only may share one. Writes what
// each launch needs to know onto the launches, and returns an object file with
// one symbol per name (empty if there is none), for linkSharedObject.
mlir::FailureOr<std::string> generateObject(mlir::ModuleOp module,
                                            const ObjectOptions& options);

// As PTX, which is complete; each kernel has code of its own.
mlir::FailureOr<std::string> generatePtx(mlir::ModuleOp module,
                                         const PtxOptions& options);

// Write the same onto kernels and launches (ranges, blocks, scratch, parts,
// cycles) and generate no machine code: all that prices and memory depend on.
mlir::LogicalResult describeObject(mlir::ModuleOp module);
mlir::LogicalResult describePtx(mlir::ModuleOp module,
                                const PtxOptions& options);

// After any of these for a CPU: estimated cycles of one core for one item of a
// launch's range, by the name of the code.
llvm::StringMap<double> cyclesOfCode(mlir::ModuleOp module);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
