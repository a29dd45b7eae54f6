// partita plan: chooses a plan, for people, for programs, and as a file.
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
  mlir::ModuleOp model;  // imported for training; is not changed
  // Makes the same model in other sizes; empty if that is not possible.
  ModelFactory make;
  CompileOptions options;       // the training; the target, unless it is empty
  planner::Cluster cluster;     // all its devices are used
  planner::FixedChoices fixed;  // of --fix, for models of every kind
  double memory = 0;            // bytes per device; 0: what the device has
  bool by_layer = false;        // propose plans with a mapping for each layer
  int64_t batch = 0;  // required samples per step of the model; 0: any
  // Precisions of parameters and activations to search. The fastest plan of all
  // is chosen. A precision without a plan is left out if another has one.
  std::vector<plan::Precision> precisions = {plan::Precision::kF32};
  // Approximate limit on the instructions of all compiled programs, which
  // bounds the time of the search. At least three plans are priced.
  int64_t effort = 30'000;
  std::string output;  // the plan file; empty: none is written
};

// Returns the choice and writes the plan file:
// - "text" of the plan, its one-line "division", and "step_seconds" and
//   "memory_bytes" as `partita simulate` prints them for the compiled plan;
// - "parts" of the step, and "kinds": the functions of the program with their
//   calls and seconds;
// - "alternatives", all different; "precisions": the same plan in other
//   precisions; "gains": savings on slightly better hardware;
// - numbers of plans: "considered" (estimated), "priced_by_kinds", "compiled",
//   "too_slow" (by a lower bound) and "not_compiled";
// - "undivided": no axis of the chosen plan divides anything;
// - "loops": the number of loops of the model whose iterations depend on data;
//   each is counted as one iteration; absent if there are none.
// A "composed" price is put together from prices of layer kinds by the
// schedule. Runners-up may have one, and so may a choice that is too long to
// compile here. Fails if no plan fits the devices.
absl::StatusOr<llvm::json::Value> choosePlan(const PlanRequest& request);
void printChoice(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_
