// What a model's annotations and a plan's overrides say, before any entry acts.
#ifndef PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_
#define PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_

#include <string>
#include <vector>

#include "compiler/core/sharding.h"
#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Whether the plan is for the mesh that the model brings with it, which its
// annotations speak of. Fails with a diagnostic that shows both.
mlir::LogicalResult checkMesh(mlir::ModuleOp module, const plan::Plan& plan);

// An importer counts the operations that it annotates (`dist.annotations`);
// operations that other passes merge or replace lose the attribute. Reports by
// a remark how many did, and forgets the count.
void reportLostAnnotations(mlir::ModuleOp module);

// A sharding per value of the problem, which is on the plan's mesh:
// `dist.sharding` of arguments, `dist.shardings` of operations, what
// dist.constraint and dist.reshard ask for, and the plan's overrides of
// parameters and inputs; what is annotated nowhere is whole and open. Fails,
// with a diagnostic that names both places, where two contradict each other,
// and where an override names no tensor or does not fit it.
mlir::FailureOr<std::vector<core::Sharding>> readAnnotations(
    mlir::ModuleOp module, const plan::Plan& plan, const Problem& problem);

// Whether the members of each dist.group are divided alike, as far as
// annotations say, which have been propagated. Fails with a diagnostic that
// names two that differ.
mlir::LogicalResult checkGroups(const Problem& problem,
                                const std::vector<core::Sharding>& shardings);

// What one tensor has to be where two say something of it: the axes of both,
// where one's are the first of the other's and nothing is added to a closed
// dimension. Empty where it is in `merged`; else what contradicts, as
// "dimension 0 is closed there".
std::string mergeAnnotations(const core::Mesh& mesh,
                             const core::Sharding& given,
                             const core::Sharding& other,
                             core::Sharding& merged);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_
