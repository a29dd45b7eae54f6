// Checks on random chains of data movement that canonicalisation does not
// change the numbers that a function computes.
#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "dialects/nn/fold.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/interpreter_fixture.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace partita::nn {
namespace {

using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;

class CanonicalizeTest : public InterpreterFixture {
 protected:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }

  // A random operation on x. Sizes of 1, unchanged dimensions and empty moves
  // are frequent, because they trigger folding.
  Value randomMove(mlir::OpBuilder& builder, Value x) {
    const auto type = mlir::cast<RankedTensorType>(x.getType());
    const mlir::Location loc = builder.getUnknownLoc();
    const int64_t rank = type.getRank();
    switch (pick(0, 6)) {
      case 0:
        return randomReshape(builder, x);
      case 1: {
        SmallVector<int64_t> perm =
            llvm::to_vector(llvm::seq<int64_t>(0, rank));
        std::shuffle(perm.begin(), perm.end(), generator_);
        return TransposeOp::create(builder, loc, x, perm);
      }
      case 2:
        return randomBroadcast(builder, x);
      case 3:
        return randomSlice(builder, x);
      case 4: {
        SmallVector<int64_t> low, high, shape;
        for (int64_t size : type.getShape()) {
          low.push_back(pick(0, 3) / 3), high.push_back(pick(0, 3) / 3);
          shape.push_back(low.back() + size + high.back());
        }
        const Value zero =
            constant(builder, RankedTensorType::get({}, type.getElementType()));
        return PadOp::create(builder, loc, type.clone(shape), x, zero, low,
                             high);
      }
      case 5: {
        if (rank == 0) return x;
        const int64_t axis = pick(0, rank - 1), copies = pick(1, 2);
        SmallVector<int64_t> shape(type.getShape());
        shape[axis] *= copies;
        return ConcatOp::create(builder, loc, type.clone(shape),
                                SmallVector<Value>(copies, x), axis);
      }
      default: {
        SmallVector<int64_t> dims;
        for (int64_t dim = 0; dim < rank; ++dim) {
          if (pick(0, 3) == 0) dims.push_back(dim);
        }
        return ReduceOp::create(builder, loc, ReduceKind::max, x, dims);
      }
    }
  }

  Value randomReshape(mlir::OpBuilder& builder, Value x) {
    // Drops dimensions of size 1, joins some adjacent ones, inserts new ones of
    // size 1.
    const auto type = mlir::cast<RankedTensorType>(x.getType());
    SmallVector<int64_t> shape;
    for (int64_t size : type.getShape()) {
      if (size == 1 && pick(0, 1)) continue;
      if (!shape.empty() && pick(0, 3) == 0) {
        shape.back() *= size;
      } else {
        if (shape.size() < 4 && pick(0, 3) == 0) shape.push_back(1);
        shape.push_back(size);
      }
    }
    return ReshapeOp::create(builder, builder.getUnknownLoc(),
                             type.clone(shape), x);
  }

  Value randomBroadcast(mlir::OpBuilder& builder, Value x) {
    const auto type = mlir::cast<RankedTensorType>(x.getType());
    SmallVector<int64_t> shape, dims;
    for (int64_t size : type.getShape()) {
      if (shape.size() < 4 && pick(0, 3) == 0) shape.push_back(pick(1, 2));
      dims.push_back(shape.size());
      shape.push_back(size == 1 ? pick(1, 2) : size);
    }
    return BroadcastOp::create(builder, builder.getUnknownLoc(),
                               type.clone(shape), x, dims);
  }

  Value randomSlice(mlir::OpBuilder& builder, Value x) {
    const auto type = mlir::cast<RankedTensorType>(x.getType());
    SmallVector<int64_t> starts, strides, shape;
    for (int64_t size : type.getShape()) {
      const int64_t stride = pick(0, 2) == 0 ? pick(1, 2) : 1,
                    taken = pick(1, (size - 1) / stride + 1);
      const int64_t extent = (taken - 1) * stride + 1,
                    first = pick(0, size - extent);
      const bool backwards = pick(0, 3) == 0;
      starts.push_back(backwards ? first + extent - 1 : first);
      strides.push_back(backwards ? -stride : stride);
      shape.push_back(taken);
    }
    return SliceOp::create(builder, builder.getUnknownLoc(), type.clone(shape),
                           x, starts, strides);
  }

  Value constant(mlir::OpBuilder& builder, RankedTensorType type) {
    Tensor numbers = random(type);
    if (pick(0, 1)) {
      for (int64_t i = 1; i < numbers.size(); ++i)
        numbers.copyFrom(i, numbers, 0);
    }
    return mlir::arith::ConstantOp::create(builder, builder.getUnknownLoc(),
                                           numbers.toAttr());
  }

  // A function that applies up to six moves to one argument or constant.
  mlir::OwningOpRef<mlir::ModuleOp> randomModule() {
    mlir::OpBuilder builder(&context_);
    const RankedTensorType type =
        typeFrom(pick(0, 1) ? "tensor<2x1x3xf32>" : "tensor<1x4x1xf32>");
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    auto function =
        mlir::func::FuncOp::create(builder, builder.getUnknownLoc(), "f",
                                   builder.getFunctionType(type, {}));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    Value value = function.getArgument(0);
    if (pick(0, 2) == 0) value = constant(builder, type);
    for (int64_t i = pick(1, 6); i > 0; --i) value = randomMove(builder, value);
    mlir::func::ReturnOp::create(builder, builder.getUnknownLoc(), value);
    function.setType(builder.getFunctionType(type, value.getType()));
    return module;
  }
};

int64_t countOps(mlir::func::FuncOp function) {
  return llvm::range_size(function.front().without_terminator());
}

TEST_F(CanonicalizeTest, RandomChainsKeepTheirNumbers) {
  mlir::PassManager passes(&context_);
  passes.addPass(mlir::createCanonicalizerPass());
  int64_t before = 0, after = 0;
  for (int round = 0; round < 2000; ++round) {
    auto module = randomModule();
    auto function = functionNamed(*module, "f");
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    SCOPED_TRACE(text);
    const std::vector<Tensor> arguments = randomArguments(function);
    const auto expected = interpret(function, arguments);
    ASSERT_TRUE(mlir::succeeded(expected));
    before += countOps(function);
    ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
    after += countOps(function);
    const auto found = interpret(function, arguments);
    ASSERT_TRUE(mlir::succeeded(found));
    expectClose(found->front(), expected->front(), 0, 0);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(after, before * 3 / 4)
      << "little was folded of " << before << " operations";
}

TEST_F(CanonicalizeTest, FoldByReferenceWantsConstantsAndRespectsTheLimit) {
  auto module = parse(R"(
    func.func @f(%x: tensor<2xi64>) -> (tensor<1xi64>, tensor<2xi64>, tensor<2xi64>) {
      %c = arith.constant dense<[[5], [6]]> : tensor<2x1xi64>
      %i = arith.constant dense<[[1]]> : tensor<1x1xi64>
      %t = arith.constant dense<[7, 8]> : tensor<2xi64>
      %gather = nn.gather %t[%i] axes = [0] : tensor<2xi64>, tensor<1x1xi64> -> tensor<1xi64>
      %sum = arith.addi %t, %t : tensor<2xi64>
      %open = arith.addi %t, %x : tensor<2xi64>
      return %gather, %sum, %open : tensor<1xi64>, tensor<2xi64>, tensor<2xi64>
    })");
  auto terminator = functionNamed(*module, "f").front().getTerminator();
  mlir::Operation* gather = terminator->getOperand(0).getDefiningOp();
  mlir::Operation* sum = terminator->getOperand(1).getDefiningOp();
  mlir::Operation* open = terminator->getOperand(2).getDefiningOp();
  const auto gathered = foldByReference(gather, 1);
  ASSERT_TRUE(mlir::succeeded(gathered));
  EXPECT_EQ(numbersOf(Tensor::fromAttr(gathered->front())),
            (std::vector<double>{8}));
  EXPECT_TRUE(mlir::succeeded(foldByReference(sum, 2)));
  EXPECT_TRUE(mlir::failed(foldByReference(sum, 1)));
  EXPECT_TRUE(mlir::failed(foldByReference(open, 2)));
}

}  // namespace
}  // namespace partita::nn
