// `recompute: budget`: as little computed again as a limit of memory allows.
#ifndef PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_
#define PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_

#include <string>
#include <vector>

#include "compiler/driver/compile_options.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// The rules that count: the plan's, which may be null, or the options'.
const std::vector<plan::Recompute>& recomputeRules(const plan::Plan* plan,
                                                   const TrainOptions& train);
bool hasBudget(const std::vector<plan::Recompute>& rules);

// The parts of a model that repeat, by names of its parameters: the deepest
// that ends in a number ("transformer.h.0"), in the order of the parameters.
std::vector<std::string> layersOf(mlir::ModuleOp module);

struct RecomputeChoice {
  std::vector<plan::Recompute> rules;  // without budget
  int64_t bytes = 0;                   // that a device takes so
  std::string text;  // "full in transformer.h.0 and 3 more of 12 layers, ..."
};

// For a simplified module, which stays as it is: the first of none, selective,
// full in the first layer, in the first two, ..., full everywhere, that takes
// at most `limit` bytes on a device, or the last of them. Each is compiled up
// to its memory table, without machine code. Later ones are assumed to need
// less. Fails after diagnostics where one cannot be compiled.
mlir::FailureOr<RecomputeChoice> chooseRecomputation(
    mlir::ModuleOp module, const CompileOptions& options, int64_t limit,
    Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CHOOSE_RECOMPUTATION_H_
