// Turns kernel functions into code for a target.
#ifndef PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
#define PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_

#include <string>

#include "compiler/kernels/object.h"
#include "compiler/kernels/ptx.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Generates code for every function marked `exec.kernel`. The mark becomes the
// name of its code: kernels that differ in their sizes only may share one.
// Writes onto the launches the numbers that they need, and returns an object
// file with one symbol per name, for linkSharedObject; empty if there are no
// kernels.
mlir::FailureOr<std::string> generateObject(mlir::ModuleOp module,
                                            const ObjectOptions& options);

// Does the same as complete PTX; each kernel has its own code.
mlir::FailureOr<std::string> generatePtx(mlir::ModuleOp module,
                                         const PtxOptions& options);

// Write the same onto kernels and launches (ranges, blocks, scratch, parts,
// cycles) without generating machine code. Cost estimates and memory planning
// need no more.
mlir::LogicalResult describeObject(mlir::ModuleOp module);
mlir::LogicalResult describePtx(mlir::ModuleOp module,
                                const PtxOptions& options);

// Estimated cycles of one core for one item of a launch's range, by the name of
// the code. Requires that one of the functions above ran for a CPU.
llvm::StringMap<double> cyclesOfCode(mlir::ModuleOp module);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_GENERATE_CODE_H_
