// Passes that spread a model over the stages of a pipeline; see passes.td.
#ifndef PARTITA_COMPILER_PIPELINE_PASSES_H_
#define PARTITA_COMPILER_PIPELINE_PASSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/core/schedule.h"
#include "compiler/core/stages.h"
#include "compiler/pipeline/kept_bytes.h"
#include "compiler/plan/plan.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::pipeline {

// Returns the option `cells` of partita-split-backward for a schedule: the
// stage and microbatch of every gradient that is split into two cells; empty if
// there are none.
std::string cellsToSplit(const core::Schedule& schedule);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/pipeline/passes.h.inc"

// Memory limits of stages, and how to measure the memory that they need.
struct StageMemory {
  // `limits.stages` is ignored: the pass's option gives it. `memory` is in
  // bytes per stage.
  core::StageLimits limits;
  // Peak number of versions of a stage's weights.
  int versions = 1;
  // Measures a module whose nn.stage attributes hold part numbers, 0 to parts -
  // 1; does not change it. Null: stages are balanced by time alone. Fails
  // without a diagnostic if the memory is unknown.
  std::function<mlir::FailureOr<KeptBytes>(mlir::ModuleOp, int parts)> measure;
};

// Measured seconds of forward and backward of one microbatch: per call of a
// layer function, and per run of other operations between calls in @main, in
// order. Empty: Work estimates them.
struct StageTimes {
  llvm::StringMap<double> calls;
  std::vector<double> runs;
};

// Cuts into `stages` stages: after the layers that the plan lists, or balanced
// within the limits. Diagnostics name entries and places of the plan.
std::unique_ptr<mlir::Pass> createAssignStagesPass(
    int64_t stages, const plan::Plan& plan, const StageMemory& memory = {},
    const StageTimes& times = {});

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_H_
