// What partita plan says of its choice: JSON, which print_choice.cc prints.
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

// What a search has found. The plans are the pricer's.
struct FoundPlans {
  std::vector<const PricedPlan*> plans;  // all unlike, the best first
  int64_t batch = 1;                     // samples of a step
  int64_t considered = 0;                // divisions that were estimated
  std::string because;  // it was divided by its layers; empty: as asked
};

// Seconds of a step by "products", "kernels", "transfers", "collectives" and
// "bubble": means over all devices, which add up to the step.
std::map<std::string, double> partsOf(const PricedPlan& plan);

// The value of choosePlan (choose_plan.h) without "search_seconds". Prices the
// choice in other precisions.
llvm::json::Value describeChoice(const PlanRequest& request,
                                 const FoundPlans& found, PlanPricer& pricer);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_DESCRIBE_CHOICE_H_
