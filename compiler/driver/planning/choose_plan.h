// partita plan: the planner's choice for people, for programs, and as a file.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/compile_options.h"
#include "compiler/driver/planning/compose_price.h"
#include "compiler/planner/search/search.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct PlanRequest {
  mlir::ModuleOp model;  // imported for training; stays as it is
  // The same model in other sizes, where it can be made.
  ModelFactory make;
  CompileOptions options;       // the training; the target, unless it is empty
  planner::Cluster cluster;     // all its devices are used
  planner::FixedChoices fixed;  // of --fix, for models of every kind
  double memory = 0;            // bytes per device; 0: what the device has
  bool by_layer = false;        // propose plans with a mapping for each layer
  int64_t batch = 0;  // samples of a step that the model must have; 0: any
  // Precisions of parameters and activations to search in. The fastest plan of
  // all is chosen; a precision that cannot be planned is left out if another
  // can.
  std::vector<plan::Precision> precisions = {plan::Precision::kF32};
  // Instructions of compiled programs to price at most, roughly: what bounds
  // the time of the search. Three plans are priced in any case.
  int64_t effort = 30'000;
  std::string output;  // the plan file; empty: none is written
};

// "text" of the plan and its one-line "division", "step_seconds" and
// "memory_bytes" as `partita simulate` prints them of the compiled plan,
// "parts" of the step, "kinds": the functions of the program with their calls
// and seconds, "alternatives" that differ from each other, "precisions": the
// same plan in others, "gains": what a little more of the machine would save,
// and how many plans were estimated ("considered"), "priced_by_kinds",
// "compiled", "too_slow" (by a lower bound) and "not_compiled". A price that is
// "composed" is one of layer kinds, put together by the schedule: of
// runners-up, and of a choice that is too long to compile here; "undivided"
// says that no axis of the choice divides anything. The file is written.
// Refuses what fits no device.
absl::StatusOr<llvm::json::Value> choosePlan(const PlanRequest& request);
void printChoice(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_
