// Pads products whose rows begin at odd addresses; see passes.td.
#include "compiler/kernels/passed_results.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_PADPRODUCTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

// Rows are fast if they begin at multiples of 16 bytes.
constexpr int64_t kAlignedElements = 8;
// Padded rows fill the tiles of tensor cores.
constexpr int64_t kPaddedElements = 64;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// The dimensions of one operand: batch, contracted and, by their place in the
// result, free.
struct Operand {
  Value value;
  ArrayRef<int64_t> batch, contract;

  bool isBatch(int64_t dim) const { return llvm::is_contained(batch, dim); }
  bool isContracted(int64_t dim) const {
    return llvm::is_contained(contract, dim);
  }
  SmallVector<int64_t> free() const {
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < typeOf(value).getRank(); ++dim)
      if (!isBatch(dim) && !isContracted(dim)) dims.push_back(dim);
    return dims;
  }
  int64_t sizeOf(ArrayRef<int64_t> dims) const {
    int64_t size = 1;
    for (const int64_t dim : dims) size *= typeOf(value).getDimSize(dim);
    return size;
  }
};

class Padder {
 public:
  explicit Padder(nn::DotGeneralOp op)
      : op_(op),
        sides_{Operand{op.getLhs(), op.getLhsBatch(), op.getLhsContract()},
               Operand{op.getRhs(), op.getRhsBatch(), op.getRhsContract()}} {}

  // Chooses dimensions to pad. Returns false if there are none, or if the
  // product is too small to pay for copies of its operands.
  bool choose(int64_t least) {
    if (typeOf(op_.getLhs()).getElementTypeBitWidth() != 16 ||
        sides_[0].sizeOf(sides_[0].free()) < least ||
        sides_[1].sizeOf(sides_[1].free()) < least ||
        sides_[0].sizeOf(sides_[0].contract) < least)
      return false;
    for (int side : {0, 1}) {
      const int64_t last = typeOf(sides_[side].value).getRank() - 1;
      if (last >= 0 && isOdd(side, last)) pad(side, last);
    }
    // The result's rows.
    for (int side : {1, 0}) {
      const SmallVector<int64_t> free = sides_[side].free();
      if (free.empty()) continue;
      if (isOdd(side, free.back())) pad(side, free.back());
      break;
    }
    return !padding_[0].empty() || !padding_[1].empty();
  }

  // Returns the part of a padded result, if there is one.
  nn::SliceOp run() {
    mlir::OpBuilder builder(op_);
    nn::SliceOp part;
    const Value lhs = padded(builder, 0), rhs = padded(builder, 1);
    Value result = nn::DotGeneralOp::create(
        builder, op_.getLoc(), lhs, rhs, op_.getLhsBatch(), op_.getRhsBatch(),
        op_.getLhsContract(), op_.getRhsContract());
    if (result.getType() != op_.getType()) {
      const size_t rank = typeOf(result).getRank();
      const SmallVector<int64_t> starts(rank, 0), strides(rank, 1);
      part = nn::SliceOp::create(builder, op_.getLoc(), op_.getType(), result,
                                 starts, strides);
      result = part;
    }
    op_.replaceAllUsesWith(result);
    op_.erase();
    return part;
  }

 private:
  bool isOdd(int side, int64_t dim) const {
    return !sides_[side].isBatch(dim) &&
           typeOf(sides_[side].value).getDimSize(dim) % kAlignedElements != 0;
  }

  // A contracted dimension is padded on both sides.
  void pad(int side, int64_t dim) {
    padding_[side].insert(dim);
    for (auto [mine, other] :
         llvm::zip_equal(sides_[side].contract, sides_[1 - side].contract))
      if (mine == dim) padding_[1 - side].insert(other);
  }

  Value padded(mlir::OpBuilder& builder, int side) {
    Value value = sides_[side].value;
    if (padding_[side].empty()) return value;
    const RankedTensorType type = typeOf(value);
    SmallVector<int64_t> shape(type.getShape()), low(shape.size(), 0),
        high(shape.size(), 0);
    for (const int64_t dim : padding_[side]) {
      shape[dim] = llvm::alignTo(shape[dim], kPaddedElements);
      high[dim] = shape[dim] - type.getDimSize(dim);
    }
    nn::MathBuilder math(builder, op_.getLoc());
    const Value zero =
        math.constant(RankedTensorType::get({}, type.getElementType()), 0);
    return nn::PadOp::create(builder, op_.getLoc(), type.clone(shape), value,
                             zero, low, high, nn::PadMode::constant);
  }

  nn::DotGeneralOp op_;
  Operand sides_[2];
  llvm::SmallSetVector<int64_t, 2> padding_[2];  // dimensions of each side
};

class PadProducts : public impl::PadProductsPassBase<PadProducts> {
 public:
  using PadProductsPassBase::PadProductsPassBase;

  void runOnOperation() override {
    SmallVector<nn::DotGeneralOp> products;
    getOperation().walk([&](nn::DotGeneralOp op) { products.push_back(op); });
    for (nn::DotGeneralOp op : products) {
      Padder padder(op);
      if (!padder.choose(least)) continue;
      if (nn::SliceOp part = padder.run()) parts_.insert(part);
      ++padded;
    }
    if (!parts_.empty()) passPaddedResults();
  }

 private:
  // Lets functions take padded results of other functions. Otherwise the own
  // part would be stored beside them.
  void passPaddedResults() {
    PassedResults passed(getOperation());
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      mlir::Operation* terminator = function.front().getTerminator();
      for (unsigned index = 0; index < function.getNumResults(); ++index) {
        auto part = terminator->getOperand(index).getDefiningOp<nn::SliceOp>();
        if (!parts_.contains(part)) continue;
        passed_on += passed.replace(
            function, index, part.getInput(),
            [&](mlir::OpBuilder& builder, Value value) {
              return nn::SliceOp::create(builder, value.getLoc(),
                                         part.getType(), value,
                                         part.getStarts(), part.getStrides())
                  .getResult();
            });
      }
    }
  }

  llvm::DenseSet<mlir::Operation*> parts_;  // of padded results
};

}  // namespace
}  // namespace partita::kernels
