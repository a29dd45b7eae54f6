// partita plan: the planner's choice for people, for programs, and as a file.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/search.h"
#include "compiler/planner/sweep.h"
#include "compiler/planner/write_plan.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

struct PlanRequest {
  planner::Request request;
  planner::PlanNames names;
  std::string output;  // the plan file; empty: none is written
};

// "layers=96,hidden=12288,heads=96,seq_len=2048": a row of a sweep, without
// what is to be chosen: its architecture and its software.
absl::StatusOr<planner::SweepRow> parseRow(const std::string& text);

// "tp=8,zero=1,schedule=1f1b": what the search may not choose.
absl::StatusOr<planner::FixedChoices> parseFixed(
    const std::vector<std::string>& texts);

// "text" of the plan, "division", "step_seconds", "memory_bytes", "parts",
// "gap", "binds", "alternatives" with what each would cost, "gains": what a
// little more of the machine would save; the file is written.
absl::StatusOr<llvm::json::Value> choosePlan(const PlanRequest& request);
void printChoice(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_PLAN_H_
