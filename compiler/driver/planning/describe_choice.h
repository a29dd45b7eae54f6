// Describes the choice of `partita plan` as JSON, which print_choice.cc prints.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_DESCRIBE_CHOICE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_DESCRIBE_CHOICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/driver/planning/choose_plan.h"
#include "compiler/driver/planning/price_plan.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

// The result of a search. The pricer owns the plans.
struct FoundPlans {
  std::vector<const PricedPlan*> plans;  // all different, the best first
  int64_t batch = 1;                     // samples per step
  int64_t considered = 0;                // number of estimated divisions
  std::string because;  // why it was divided by layers; empty: on request
};

// Mean seconds over all devices by "products", "kernels", "transfers",
// "collectives" and "bubble"; the parts add up to the step.
std::map<std::string, double> partsOf(const PricedPlan& plan);

// Returns the value of choosePlan (choose_plan.h), except "search_seconds".
// Prices the choice in other precisions.
llvm::json::Value describeChoice(const PlanRequest& request,
                                 const FoundPlans& found, PlanPricer& pricer);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_DESCRIBE_CHOICE_H_
