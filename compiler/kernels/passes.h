// Passes from nn operations to exec operations; see passes.td.
#ifndef PARTITA_COMPILER_KERNELS_PASSES_H_
#define PARTITA_COMPILER_KERNELS_PASSES_H_

#include <memory>

#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::kernels {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/kernels/passes.h.inc"

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PASSES_H_
