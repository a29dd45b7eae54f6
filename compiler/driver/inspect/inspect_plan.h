// What a plan file says.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_

#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

// "mesh", "devices", "entries" in order of priority, the canonical "text" of
// the whole, and "unsupported": what the compiler does not act on yet; empty
// where that is nothing.
llvm::json::Value inspectPlan(const plan::Plan& plan);
void printPlan(const llvm::json::Value& facts, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PLAN_H_
