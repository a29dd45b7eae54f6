// Writes a plan as JAX's PartitionSpecs: which axes of the mesh divide each
// dimension of each argument and result of a model.
#ifndef PARTITA_COMPILER_DRIVER_PARTITION_SPECS_H_
#define PARTITA_COMPILER_DRIVER_PARTITION_SPECS_H_

#include "compiler/driver/annotate.h"

namespace partita::driver {

// True if `path` is a file that writePartitionSpecs writes: .json or .py.
bool isPartitionSpecs(llvm::StringRef path);

// Divides any model as annotateModel does, and writes `options.output`: a JSON
// object, or a Python file with the same content. Specs that JAX has no words
// for (parts of an axis, blocks other than the even share) are left out and
// counted. Fails after diagnostics and then writes nothing; `fault` says whose
// fault it is.
mlir::FailureOr<llvm::json::Value> writePartitionSpecs(
    const AnnotateOptions& options, mlir::MLIRContext* context, Fault& fault);
void printPartitionSpecs(const llvm::json::Value& facts,
                         llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PARTITION_SPECS_H_
