// Passes that decide how a model is divided; see passes.td.
#ifndef PARTITA_COMPILER_SHARDING_PASSES_H_
#define PARTITA_COMPILER_SHARDING_PASSES_H_

#include <memory>

#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace partita::sharding {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/sharding/passes.h.inc"

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_PASSES_H_
