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

// The option `cells` of partita-split-backward for a schedule: those whose
// gradients are two cells; empty where there are none.
std::string cellsToSplit(const core::Schedule& schedule);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/pipeline/passes.h.inc"

// What stages may take of a device's memory, and what they will.
struct StageMemory {
  // But for the number of stages, which the pass says. Memory is of a stage.
  core::StageLimits limits;
  // The most versions of a stage's weights that there are at once.
  int versions = 1;
  // Of a module whose operations bear the number of their part of the model
  // (nn.stage), 0 to parts - 1; leaves the module as it is. Null: stages are
  // balanced by time alone. Fails without a diagnostic where it cannot be told.
  std::function<mlir::FailureOr<KeptBytes>(mlir::ModuleOp, int parts)> measure;
};

// Seconds of forward and backward of one microbatch, as the compiled program
// takes them: of one call of a layer, by function, and of each run of other
// operations between calls in @main, in their order. Empty: estimated by Work.
struct StageTimes {
  llvm::StringMap<double> calls;
  std::vector<double> runs;
};

// As many stages, cut where the plan's list says it, if it has one, or balanced
// within these limits; what is refused has the plan's words and places.
std::unique_ptr<mlir::Pass> createAssignStagesPass(
    int64_t stages, const plan::Plan& plan, const StageMemory& memory = {},
    const StageTimes& times = {});

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_H_
