// Describes a plan file.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_

#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

// Returns "mesh", "devices", "entries" in order of priority, the canonical
// "text" of the plan, and "refused": why the plan does not compile, or empty.
llvm::json::Value inspectPlan(const plan::Plan& plan);
void printPlan(const llvm::json::Value& facts, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_
