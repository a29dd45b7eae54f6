// Emits the instructions of one function.
#ifndef PARTITA_COMPILER_EMIT_FUNCTION_EMITTER_H_
#define PARTITA_COMPILER_EMIT_FUNCTION_EMITTER_H_

#include <memory>

#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/program/artifact.h"

namespace partita::emit {

// The program's element type for an MLIR one; signless integers are signed
// unless `is_unsigned`.
program::DType dtypeOf(mlir::Type type, bool is_unsigned);
std::unique_ptr<program::TensorTypeT> tensorType(mlir::RankedTensorType type,
                                                 bool is_unsigned);

// Emits a function whose memory is planned. Constants go to `data`. The maps
// hold indices by function and kernel name.
mlir::FailureOr<std::unique_ptr<program::FunctionT>> emitFunction(
    mlir::func::FuncOp function, const llvm::StringMap<int>& function_index,
    const llvm::StringMap<int>& kernel_index, program::DataSection& data);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_FUNCTION_EMITTER_H_
