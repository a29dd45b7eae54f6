// Tensors with one row per device that shares the batch.
#ifndef PARTITA_COMPILER_SHARDING_DEVICE_ROWS_H_
#define PARTITA_COMPILER_SHARDING_DEVICE_ROWS_H_

#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "dialects/dist/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace partita::sharding {

// The axes that divide rows, and shardings along them. The mesh must outlive
// this object.
class DeviceRows {
 public:
  DeviceRows(mlir::MLIRContext* context, const core::Mesh& mesh,
             std::vector<core::AxisRef> axes)
      : context_(context), mesh_(mesh), axes_(std::move(axes)) {}

  int64_t count() const { return core::SizeOf(axes_); }
  // Places a value with the rows along `dim` divided; -1: replicated. No other
  // dimension is divided.
  void place(mlir::Value value, int dim) const;
  // Places a value with the rows along dimension 0 divided. Propagation may
  // divide the others.
  void placeOpen(mlir::Value value) const;
  // Returns `value` in the sharding of `place`.
  mlir::Value moved(mlir::OpBuilder& builder, mlir::Value value, int dim) const;

  // Returns [rows, ...]: each device's row is its own value of `value`, or its
  // summand times the number of rows if `value` is a partial sum.
  mlir::Value sharesOf(mlir::OpBuilder& builder, mlir::Value value) const;
  // Returns [...]: on each device, its own row.
  mlir::Value ownRow(mlir::OpBuilder& builder, mlir::Value rows) const;

  // Adds a state with one row per device, initially zero, to @main.
  mlir::Value addState(mlir::func::FuncOp main, const std::string& name,
                       mlir::RankedTensorType type) const;

 private:
  dist::ShardingAttr along(int dim, int64_t rank, bool open) const;

  mlir::MLIRContext* context_;
  const core::Mesh& mesh_;
  const std::vector<core::AxisRef> axes_;
};

// Appends a result of @main that updates argument `name`.
void addUpdate(mlir::func::FuncOp main, mlir::Value value,
               const std::string& name);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DEVICE_ROWS_H_
