// `recompute: budget`: chooses the least recomputation that fits a memory
// limit.
#ifndef PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_
#define PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_

#include <string>
#include <vector>

#include "compiler/driver/compile_options.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// The rules in effect: the plan's, if it has any, else the options'. `plan` may
// be null.
const std::vector<plan::Recompute>& recomputeRules(const plan::Plan* plan,
                                                   const TrainOptions& train);
bool hasBudget(const std::vector<plan::Recompute>& rules);

// Names of the repeated layers of a model: of each parameter's name, the
// longest prefix that ends in a number ("transformer.h.0"). In parameter order.
std::vector<std::string> layersOf(mlir::ModuleOp module);

struct RecomputeChoice {
  std::vector<plan::Recompute> rules;  // without budget
  int64_t bytes = 0;                   // memory per device under these rules
  std::string text;  // "full in 4 of 12 layers ('h.0' to 'h.3'), ..."
};

// Tries these candidates in order: none, selective, full in the first layer, in
// the first two layers, ..., full everywhere. Returns the first that takes at
// most `limit` bytes per device, or full everywhere if none fits. Assumes that
// later candidates need less memory. `module` is simplified and is not changed;
// each candidate is compiled up to its memory table, without machine code.
// Fails after diagnostics if a candidate cannot be compiled.
mlir::FailureOr<RecomputeChoice> chooseRecomputation(
    mlir::ModuleOp module, const CompileOptions& options, int64_t limit,
    Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_
