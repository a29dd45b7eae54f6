// Finds the operations for early results, then those for late results, and the
// boundary between them with the fewest bytes.
#include "compiler/pipeline/split_function.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;
using Operations = llvm::DenseSet<Operation*>;

// True if recomputing costs no more than reading the operands.
bool isElementwise(Operation* op) {
  return llvm::isa<mlir::arith::ArithDialect, mlir::math::MathDialect>(
             op->getDialect()) ||
         llvm::isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
                   nn::PadOp, nn::IotaOp>(op);
}

// True if the operation is worth a cell of its own in a schedule.
bool isHeavy(Operation* op) {
  return !isElementwise(op) &&
         !llvm::isa<nn::ReduceOp, nn::ConcatOp, nn::LayerNormOp, nn::RmsNormOp,
                    nn::BatchNormOp, nn::SoftmaxOp>(op);
}

// Returns the operations needed to compute `values` from `given`.
Operations sliceOf(llvm::ArrayRef<Value> values,
                   const llvm::SetVector<Value>& given) {
  Operations slice;
  SmallVector<Value> open(values);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation* producer = value.getDefiningOp();
    if (producer && !given.contains(value) && slice.insert(producer).second)
      llvm::append_range(open, producer->getOperands());
  }
  return slice;
}

class Splitter {
 public:
  Splitter(FuncOp whole, llvm::ArrayRef<When> results,
           llvm::ArrayRef<bool> stored)
      : whole_(whole), when_(results), stored_(stored) {
    for (Operation& op : whole_.front()) number_[&op] = number_.size();
  }

  SplitFunction run() {
    SplitFunction split;
    findEarly();
    if (early_.empty()) return split.second = whole_, split;
    const SmallVector<Value> light = findLate();
    settleNeeds();
    for (Value result : light) settleLight(result);
    if (late_.empty()) return split.first = whole_, split;
    return build();
  }

 private:
  Operation* terminator() { return whole_.front().getTerminator(); }

  void findEarly() {
    for (auto [value, when] :
         llvm::zip_equal(terminator()->getOperands(), when_))
      if (when == When::kEarly) early_.insert(value);
    in_first_ = sliceOf(early_.getArrayRef(), {});
  }

  // Returns late results that need no heavy operation of their own.
  SmallVector<Value> findLate() {
    SmallVector<Value> light;
    for (auto [value, when] :
         llvm::zip_equal(terminator()->getOperands(), when_)) {
      if (when != When::kLate || early_.contains(value)) continue;
      if (isInFirst(value)) {
        early_.insert(value);
        continue;
      }
      const bool is_heavy =
          llvm::any_of(sliceOf(value, {}), [&](Operation* op) {
            return !in_first_.contains(op) && isHeavy(op);
          });
      if (is_heavy)
        late_.insert(value);
      else
        light.push_back(value);
    }
    return light;
  }

  bool isInFirst(Value value) const {
    Operation* producer = value.getDefiningOp();
    return !producer || in_first_.contains(producer);
  }

  // Chooses the values passed to the second half for its heavy results.
  void settleNeeds() {
    SmallVector<Value> needs;
    for (Operation* op : sliceOf(late_.getArrayRef(), {})) {
      if (in_first_.contains(op)) continue;
      for (Value operand : op->getOperands())
        if (isInFirst(operand)) needs.push_back(operand);
    }
    // Consider values that are passed in any case first.
    llvm::sort(needs, [&](Value a, Value b) { return rank(a) < rank(b); });
    for (Value value : needs) {
      const SmallVector<Value> leaves = leavesOf(value);
      if (bytesOf(leaves) < bytesOf(value))
        given_.insert(leaves.begin(), leaves.end());
      else
        given_.insert(value);
    }
  }

  // Order: arguments, operations that must not be recomputed, other operations.
  std::tuple<int, int, int> rank(Value value) const {
    Operation* producer = value.getDefiningOp();
    if (!producer)
      return {0, llvm::cast<mlir::BlockArgument>(value).getArgNumber(), 0};
    return {isElementwise(producer) ? 2 : 1, number_.lookup(producer),
            llvm::cast<mlir::OpResult>(value).getResultNumber()};
  }

  // A light result, such as a reduction, goes to the second half if its
  // operands are passed already or are smaller than the result.
  void settleLight(Value result) {
    const SmallVector<Value> leaves = leavesOf(result);
    if (bytesOf(leaves) < bytesOf(result)) {
      late_.insert(result);
      given_.insert(leaves.begin(), leaves.end());
    } else {
      early_.insert(result);
    }
  }

  // Returns the additional values that the second half needs to compute
  // `value`.
  SmallVector<Value> leavesOf(Value value) {
    llvm::SetVector<Value> leaves;
    llvm::DenseSet<Value> seen;
    SmallVector<Value> open = {value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      if (given_.contains(next) || !seen.insert(next).second) continue;
      Operation* producer = next.getDefiningOp();
      if (producer && (isElementwise(producer) || !isInFirst(next)))
        llvm::append_range(open, producer->getOperands());
      else
        leaves.insert(next);
    }
    return leaves.takeVector();
  }

  int64_t bytesOf(llvm::ArrayRef<Value> values) const {
    int64_t bytes = 0;
    for (Value value : values) {
      auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
      if (argument && stored_[argument.getArgNumber()]) continue;
      auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
      bytes += type.getNumElements() *
               llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    }
    return bytes;
  }

  SplitFunction build() {
    SplitFunction split;
    SmallVector<Value> passed;
    for (Value value : given_)
      if (value.getDefiningOp()) passed.push_back(value);
    llvm::SetVector<Value> returned = early_;
    returned.insert(passed.begin(), passed.end());
    split.first =
        makeHalf("_input", returned.getArrayRef(), {}, split.first_arguments);
    split.second = makeHalf("_weight", late_.getArrayRef(), passed,
                            split.second_arguments);
    for (Value value : passed)
      split.passed.push_back(llvm::find(returned, value) - returned.begin());
    for (Value value : terminator()->getOperands()) {
      const bool is_second = late_.contains(value);
      const auto& from = is_second ? late_ : returned;
      split.results.push_back(
          {is_second,
           static_cast<unsigned>(llvm::find(from, value) - from.begin())});
    }
    return split;
  }

  // Makes a function that computes `returned` from arguments of the whole,
  // whose indices it appends to `arguments`, followed by `passed`.
  FuncOp makeHalf(llvm::StringRef ending, llvm::ArrayRef<Value> returned,
                  llvm::ArrayRef<Value> passed,
                  SmallVector<unsigned>& arguments) {
    llvm::SetVector<Value> known(passed.begin(), passed.end());
    const Operations slice = sliceOf(returned, known);
    FuncOp half =
        FuncOp::create(whole_.getLoc(), (whole_.getName() + ending).str(),
                       mlir::FunctionType::get(whole_.getContext(), {}, {}));
    half->setDiscardableAttrs(whole_->getDiscardableAttrDictionary());
    half.setPrivate();
    mlir::Block& block = *half.addEntryBlock();
    mlir::IRMapping map;
    for (mlir::BlockArgument argument : whole_.getArguments()) {
      const bool is_read =
          llvm::is_contained(returned, argument) ||
          llvm::any_of(argument.getUsers(),
                       [&](Operation* user) { return slice.contains(user); });
      if (!is_read) continue;
      arguments.push_back(argument.getArgNumber());
      map.map(argument,
              block.addArgument(argument.getType(), argument.getLoc()));
    }
    for (Value value : passed)
      map.map(value, block.addArgument(value.getType(), value.getLoc()));
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(&block);
    for (Operation& op : whole_.front())
      if (slice.contains(&op)) builder.clone(op, map);
    SmallVector<Value> results;
    for (Value value : returned) results.push_back(map.lookup(value));
    auto end =
        mlir::func::ReturnOp::create(builder, terminator()->getLoc(), results);
    half.setFunctionType(mlir::FunctionType::get(
        whole_.getContext(), block.getArgumentTypes(), end.getOperandTypes()));
    return half;
  }

  FuncOp whole_;
  llvm::ArrayRef<When> when_;
  llvm::ArrayRef<bool> stored_;
  llvm::DenseMap<Operation*, int> number_;
  Operations in_first_;  // needed by early results
  // Results of the first half; of the second half.
  llvm::SetVector<Value> early_, late_;
  llvm::SetVector<Value> given_;  // passed to the second half
};

}  // namespace

SplitFunction splitFunction(FuncOp whole, llvm::ArrayRef<When> results,
                            llvm::ArrayRef<bool> stored) {
  return Splitter(whole, results, stored).run();
}

}  // namespace partita::pipeline
