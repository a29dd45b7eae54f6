// Folds any operation with its reference implementation.
#include "dialects/nn/fold.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Matchers.h"

namespace partita::nn {

using mlir::ArrayRef;
using mlir::Attribute;
using mlir::DenseElementsAttr;
using mlir::failure;
using mlir::FailureOr;
using mlir::SmallVector;

FailureOr<SmallVector<DenseElementsAttr>> foldByReference(
    mlir::Operation* op, ArrayRef<Attribute> operands, int64_t max_elements) {
  auto reference = mlir::dyn_cast<ReferenceOpInterface>(op);
  if (!reference) return failure();
  for (mlir::Type type : op->getResultTypes()) {
    const auto ranked = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (!ranked || !ranked.hasStaticShape() ||
        ranked.getNumElements() > max_elements)
      return failure();
  }
  SmallVector<Tensor> values;
  for (Attribute operand : operands) {
    const auto dense =
        mlir::dyn_cast_if_present<mlir::DenseIntOrFPElementsAttr>(operand);
    if (!dense || !mlir::isa<mlir::RankedTensorType>(dense.getType()))
      return failure();
    if (!dense.getElementType().isIntOrIndexOrFloat() ||
        dense.size() > kMaxUnpackedElements)
      return failure();
    values.push_back(Tensor::fromAttr(dense));
  }
  FailureOr<SmallVector<Tensor>> results = reference.evaluate(values);
  if (mlir::failed(results)) return failure();
  return llvm::map_to_vector(
      *results, [](const Tensor& result) { return result.toAttr(); });
}

FailureOr<SmallVector<DenseElementsAttr>> foldByReference(
    mlir::Operation* op, int64_t max_elements) {
  SmallVector<Attribute> operands(op->getNumOperands());
  for (auto [value, operand] : llvm::zip_equal(operands, op->getOperands())) {
    if (!mlir::matchPattern(operand, mlir::m_Constant(&value)))
      return failure();
  }
  return foldByReference(op, operands, max_elements);
}

}  // namespace partita::nn
