// The mesh, and shards of ports and parameters, in the artifact's format.
#ifndef PARTITA_COMPILER_EMIT_PLACEMENT_H_
#define PARTITA_COMPILER_EMIT_PLACEMENT_H_

#include <memory>
#include <vector>

#include "dialects/dist/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/program/artifact.h"

namespace partita::emit {

// Null for a null mesh.
std::unique_ptr<program::MeshT> meshOf(dist::MeshOp mesh);

// Each axis part is given by three numbers: an axis, pre and size.
std::vector<program::AxisPart> axisParts(llvm::ArrayRef<int64_t> triples);

// The shard of an argument or a result of this (local) type, from its
// attributes `dist.sharding` and `dist.global_type`, either of which may be
// missing. Null if every device holds the whole tensor. Emits a diagnostic at
// `loc` if the value is a partial sum, or its global type is unknown.
mlir::FailureOr<std::unique_ptr<program::ShardT>> shardOf(
    mlir::Location loc, const std::string& name, dist::MeshOp mesh,
    mlir::Type type, mlir::Attribute sharding, mlir::Attribute global_type);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_PLACEMENT_H_
