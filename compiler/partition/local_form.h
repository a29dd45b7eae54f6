// The context in which an operation's local form is built, and the default
// local form.
#ifndef PARTITA_COMPILER_PARTITION_LOCAL_FORM_H_
#define PARTITA_COMPILER_PARTITION_LOCAL_FORM_H_

#include "compiler/core/propagate.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::partition {

struct LocalForm {
  mlir::OpBuilder& builder;
  const core::Mesh& mesh;
  const core::ShardingRule& rule;
  const core::OpSharding& sharding;
  mlir::Operation* op;                      // on global shapes
  llvm::SmallVector<mlir::Value> operands;  // placed as in sharding.operands
  core::RowExchange rows = {};              // of experts

  mlir::Location loc() const { return op->getLoc(); }
  // Returns the reason attribute of a collective that the form needs.
  mlir::StringAttr why(const std::string& what) const;
  llvm::ArrayRef<int64_t> globalShape(mlir::Value value) const {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  mlir::RankedTensorType operandType(int i) const {
    return llvm::cast<mlir::RankedTensorType>(operands[i].getType());
  }
  // Returns the local type of a result.
  mlir::RankedTensorType resultType(int i) const;

  // Builds the first row of this device's block, a scalar tensor<i64>. The
  // dimension must be divided.
  mlir::Value firstRow(int64_t size, const core::DimSharding& dim) const;
  // Builds an i1 mask of like's shape: true for rows along `dim` that are
  // inside a dimension of `size` rows.
  mlir::Value insideMask(mlir::RankedTensorType like, int64_t dim, int64_t size,
                         const core::DimSharding& sharding) const;
  // Returns `local` with `neutral` in rows of dimension `dim` beyond the end;
  // the value itself if there are none.
  mlir::Value cleanRows(mlir::Value local, int64_t dim, int64_t size,
                        const core::DimSharding& sharding,
                        mlir::TypedAttr neutral) const;
  // Returns operand i with neutral elements in rows of reduced factors beyond
  // the end.
  mlir::Value cleanOperand(int i) const;
};

// Returns the neutral element of a reduction.
mlir::TypedAttr neutralOf(core::Reduction reduction, mlir::Type element);

// Broadcasts a scalar i64 to `type`, converted to its element type.
mlir::Value spreadScalar(const LocalForm& form, mlir::Value scalar,
                         mlir::RankedTensorType type);

// Builds the operation on local operands, with reduced operands cleaned.
// Implementations of LocalFormOpInterface fall back to it.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildLocal(
    const LocalForm& form);

// Clones the operation with other operands and result types, without its
// sharding attributes.
mlir::Operation* cloneLocally(const LocalForm& form, mlir::ValueRange operands,
                              mlir::TypeRange results);

// Attaches the local forms of operations of nn and arith.
void registerLocalForms(mlir::DialectRegistry& registry);

}  // namespace partita::partition

#include "compiler/partition/local_form.h.inc"

#endif  // PARTITA_COMPILER_PARTITION_LOCAL_FORM_H_
