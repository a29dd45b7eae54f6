// Passes that bring an imported model into the compiler's standard form; see
// passes.td.
#ifndef PARTITA_COMPILER_SIMPLIFY_PASSES_H_
#define PARTITA_COMPILER_SIMPLIFY_PASSES_H_

#include <memory>

#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace partita::simplify {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/simplify/passes.h.inc"

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_PASSES_H_
