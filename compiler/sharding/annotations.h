// Reads the model's annotations and the plan's overrides. Both apply before the
// plan's entries.
#ifndef PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_
#define PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_

#include <string>
#include <vector>

#include "compiler/core/sharding.h"
#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Succeeds if the plan's mesh equals the mesh of the model's own annotations,
// or if the model has none. Fails with a diagnostic that shows both.
mlir::LogicalResult checkMesh(mlir::ModuleOp module, const plan::Plan& plan);

// An importer stores the number of operations that it annotates in
// `dist.annotations`. Operations that other passes merge or replace lose their
// annotation. Reports the number lost as a remark, and removes the attribute.
void reportLostAnnotations(mlir::ModuleOp module);

// Returns one sharding per value of the problem, on the plan's mesh. Sources
// are `dist.sharding` of arguments, `dist.shardings` of operations,
// dist.constraint, dist.reshard, and the plan's overrides of parameters and
// inputs. A value without annotation is replicated and open. Fails with a
// diagnostic that names both places if two annotations contradict each other.
// Fails if an override names no tensor or does not fit its tensor.
mlir::FailureOr<std::vector<core::Sharding>> readAnnotations(
    mlir::ModuleOp module, const plan::Plan& plan, const Problem& problem);

// Succeeds if all members of each dist.group have equal shardings. `shardings`
// are the annotations after propagation. Fails with a diagnostic that names two
// members that differ.
mlir::LogicalResult checkGroups(const Problem& problem,
                                const std::vector<core::Sharding>& shardings);

// Merges two shardings of one tensor. Each dimension takes the axes of both;
// this works if one list of axes is a prefix of the other and no axis is added
// to a closed dimension. Returns an empty string and sets `merged` on success,
// else the contradiction, e.g. "dimension 0: it is closed there".
std::string mergeAnnotations(const core::Mesh& mesh,
                             const core::Sharding& given,
                             const core::Sharding& other,
                             core::Sharding& merged);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_ANNOTATIONS_H_
