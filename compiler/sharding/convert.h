// Converts between attributes of the IR and the structures of compiler/core.
#ifndef PARTITA_COMPILER_SHARDING_CONVERT_H_
#define PARTITA_COMPILER_SHARDING_CONVERT_H_

#include "compiler/core/propagate.h"
#include "dialects/dist/dialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

core::Direction directionOf(dist::BarrierOp barrier);

// Returns the mesh of a module. Fails with a diagnostic if there is none.
mlir::FailureOr<core::Mesh> meshOf(mlir::ModuleOp module);
// Inserts `dist.mesh @mesh` at the start of the module, replacing an existing
// one.
void setMesh(mlir::ModuleOp module, const core::Mesh& mesh);

dist::AxisAttr toAttr(mlir::MLIRContext* context, const core::AxisRef& axis,
                      const core::Mesh& mesh);
dist::AxesAttr axesAttr(mlir::MLIRContext* context,
                        const std::vector<core::AxisRef>& axes,
                        const core::Mesh& mesh);
// Returns the axes of an attribute that was verified against this mesh.
std::vector<core::AxisRef> axesOf(dist::AxesAttr attr, const core::Mesh& mesh);
dist::ShardingAttr toAttr(mlir::MLIRContext* context,
                          const core::Sharding& sharding,
                          const core::Mesh& mesh);
// Fails without a diagnostic if an axis does not belong to the mesh.
mlir::FailureOr<core::Sharding> toCore(dist::ShardingAttr attr,
                                       const core::Mesh& mesh);

// Returns the sharding attribute of a value; null if it has none.
dist::ShardingAttr shardingOf(mlir::Value value);
void setSharding(mlir::Value value, dist::ShardingAttr sharding);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_CONVERT_H_
