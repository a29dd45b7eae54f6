// Meshes and shardings of Shardy as dist.mesh and dist.sharding.
#ifndef PARTITA_FRONTENDS_STABLEHLO_SHARDINGS_H_
#define PARTITA_FRONTENDS_STABLEHLO_SHARDINGS_H_

#include <string>

#include "dialects/dist/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::stablehlo {

// Reads what portable_dialects.h keeps of sdy: `sdy.mesh` operations, and
// attributes that are dictionaries. A module uses one mesh.
class Shardings {
 public:
  // Finds the meshes. Reports several meshes of other axes or sizes, and those
  // that are damaged.
  llvm::LogicalResult read(mlir::ModuleOp program, mlir::Location loc);

  // Adds dist.mesh to the module, if the program has a mesh with axes.
  void addMesh(mlir::ModuleOp module) const;

  // The mesh, null without one; and the order of its devices, null if they are
  // in order.
  dist::MeshAttr mesh() const { return mesh_; }
  mlir::DenseI64ArrayAttr devices() const { return devices_; }

  // The sharding of a value of this rank. Null without an error if the
  // attribute divides nothing, or on a mesh without axes.
  llvm::FailureOr<dist::ShardingAttr> sharding(mlir::Attribute attribute,
                                               int64_t rank,
                                               mlir::Location loc) const;

 private:
  llvm::FailureOr<dist::AxisAttr> axis(mlir::Attribute attribute,
                                       mlir::Location loc) const;
  llvm::FailureOr<llvm::SmallVector<dist::AxisAttr>> axes(
      mlir::Attribute attribute, mlir::Location loc) const;

  // Reports what is not the program's mesh: a name, or a mesh in its place.
  llvm::LogicalResult checkMesh(mlir::Attribute mesh, mlir::Location loc) const;

  llvm::StringSet<> names_;         // of meshes
  llvm::StringMap<int64_t> sizes_;  // by axis
  dist::MeshAttr mesh_;             // null: none
  mlir::DenseI64ArrayAttr devices_;
};

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_SHARDINGS_H_
