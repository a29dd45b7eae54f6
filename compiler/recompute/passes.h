// Passes that choose what the backward pass recomputes; see passes.td.
#ifndef PARTITA_COMPILER_RECOMPUTE_PASSES_H_
#define PARTITA_COMPILER_RECOMPUTE_PASSES_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "mlir/Pass/Pass.h"

namespace partita::recompute {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/recompute/passes.h.inc"

// `rules` come from a plan whose path or option is `origin`.
std::unique_ptr<mlir::Pass> createMarkRecomputationPass(
    std::vector<plan::Recompute> rules, std::string origin);

}  // namespace partita::recompute

#endif  // PARTITA_COMPILER_RECOMPUTE_PASSES_H_
