// Passes that make a training step of a model; see passes.td.
#ifndef PARTITA_COMPILER_AUTODIFF_PASSES_H_
#define PARTITA_COMPILER_AUTODIFF_PASSES_H_

#include <memory>

#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace partita::autodiff {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/autodiff/passes.h.inc"

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_PASSES_H_
