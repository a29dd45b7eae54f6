// The dist dialect's classes, generated from dialect.td, attrs.td and ops.td.
#ifndef PARTITA_DIALECTS_DIST_DIALECT_H_
#define PARTITA_DIALECTS_DIST_DIALECT_H_

#include "dialects/nn/dialect.h"
#include "dialects/terms/reduction.h"
#include "dialects/terms/symbols.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::dist {
using terms::Reduction;
}  // namespace partita::dist

// The generated code uses the declarations above.
// clang-format off
#include "dialects/dist/dialect.h.inc"
#include "dialects/dist/enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/attrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/ops.h.inc"
// clang-format on

namespace partita::dist {

// The only name that a mesh may have.
inline constexpr char kMeshName[] = "mesh";

// Names of the discardable attributes that the dialect defines; see dialect.td.
inline constexpr char kShardingAttr[] = "dist.sharding";
inline constexpr char kShardingsAttr[] = "dist.shardings";
inline constexpr char kGlobalTypeAttr[] = "dist.global_type";

// The mesh of the module that contains `op`, or that `op` is; null if there is
// none.
MeshOp findMesh(mlir::Operation* op);

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

// Verify constraints C1 and C2 (axes) and C1 to C4 (shardings of a tensor with
// the global type `type`) of the dialect. `mesh` may be null; naming an axis is
// then an error.
mlir::LogicalResult verifyAxes(EmitError error, MeshOp mesh,
                               llvm::ArrayRef<AxisAttr> axes);
mlir::LogicalResult verifySharding(EmitError error, MeshOp mesh,
                                   ShardingAttr sharding,
                                   mlir::RankedTensorType type);

// The number of rows per shard of a dimension with this size, and the local
// type of a tensor. Both require verified shardings.
int64_t blockOf(MeshOp mesh, DimAttr dim, int64_t size);
mlir::RankedTensorType localType(MeshOp mesh, ShardingAttr sharding,
                                 mlir::RankedTensorType global);

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_DIALECT_H_
