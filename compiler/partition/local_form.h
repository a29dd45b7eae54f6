// What an operation's local form is built from, and the form of most
// operations.
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
  llvm::SmallVector<mlir::Value> operands;  // as sharding.operands says

  mlir::Location loc() const { return op->getLoc(); }
  // The reason written on a collective that the form needs: what for.
  mlir::StringAttr why(const std::string& what) const;
  llvm::ArrayRef<int64_t> globalShape(mlir::Value value) const {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  mlir::RankedTensorType operandType(int i) const {
    return llvm::cast<mlir::RankedTensorType>(operands[i].getType());
  }
  // Local type of a result.
  mlir::RankedTensorType resultType(int i) const;

  // The first row of this device's block, as a scalar tensor<i64>; the
  // dimension is sharded.
  mlir::Value firstRow(int64_t size, const core::DimSharding& dim) const;
  // Which rows along `dim` of a local tensor of type `like` are inside a
  // dimension of `size` rows: i1, of like's shape.
  mlir::Value insideMask(mlir::RankedTensorType like, int64_t dim, int64_t size,
                         const core::DimSharding& sharding) const;
  // `local` with `neutral` where rows of dimension `dim` lie beyond the end;
  // the value itself where none does.
  mlir::Value cleanRows(mlir::Value local, int64_t dim, int64_t size,
                        const core::DimSharding& sharding,
                        mlir::TypedAttr neutral) const;
  // Operand i with neutral elements in the rows of reduced factors that lie
  // beyond the end.
  mlir::Value cleanOperand(int i) const;
};

// The element that leaves a reduction unchanged.
mlir::TypedAttr neutralOf(core::Reduction reduction, mlir::Type element);

// The operation itself on local operands, cleaned where they are reduced; what
// LocalFormOpInterface's implementations leave to it is done here.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildLocal(
    const LocalForm& form);

// Clones the operation with other operands and result types, without what it
// said about sharding.
mlir::Operation* cloneLocally(const LocalForm& form, mlir::ValueRange operands,
                              mlir::TypeRange results);

// Attaches the forms of nn's and arith's operations.
void registerLocalForms(mlir::DialectRegistry& registry);

}  // namespace partita::partition

#include "compiler/partition/local_form.h.inc"

#endif  // PARTITA_COMPILER_PARTITION_LOCAL_FORM_H_
