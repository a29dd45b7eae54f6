// Passes that spread a model over the stages of a pipeline; see passes.td.
#ifndef PARTITA_COMPILER_PIPELINE_PASSES_H_
#define PARTITA_COMPILER_PIPELINE_PASSES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "compiler/core/schedule.h"
#include "compiler/plan/plan.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::pipeline {

// The option `cells` of partita-split-backward for a schedule: those whose
// gradients are two cells; empty where there are none.
std::string cellsToSplit(const core::Schedule& schedule);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/pipeline/passes.h.inc"

// As many stages, cut where the plan's list says it, if it has one; what is
// refused has the plan's words and places.
std::unique_ptr<mlir::Pass> createAssignStagesPass(int64_t stages,
                                                   const plan::Plan& plan);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_H_
