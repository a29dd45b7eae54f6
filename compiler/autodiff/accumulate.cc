// Repeats the body per microbatch and sums its results; see passes.td.
#include "compiler/autodiff/call_marks.h"
#include "compiler/autodiff/microbatches.h"
#include "compiler/autodiff/noise_scale.h"
#include "compiler/autodiff/passes.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_ACCUMULATEPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

constexpr int64_t kSeedStep = int64_t{1} << 40;
constexpr char kDimsAttr[] = "nn.dims";  // as in the dialect

class Accumulate : public impl::AccumulatePassBase<Accumulate> {
 public:
  using AccumulatePassBase::AccumulatePassBase;

  void runOnOperation() override {
    if (microbatches < 1) {
      getOperation().emitError("microbatches: expected at least 1, found ")
          << microbatches.getValue();
      return signalPassFailure();
    }
    if (microbatches == 1) return;
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (mlir::failed(run(main))) signalPassFailure();
  }

 private:
  LogicalResult run(FuncOp main) {
    readMain(main);
    if (bool(divisor_) != bool(count_))
      return main.emitError("expected an input '")
             << kLossDivisorInput << "' and a result '" << kTargetCountResult
             << "' that a call returns, or neither";
    if (batched_.empty())
      return main.emitError(
          "expected inputs whose first dimension is named B, found none");
    mlir::OpBuilder builder(main.front().getTerminator());
    SmallVector<mlir::IRMapping> maps(microbatches);
    viewInputs(main);
    sliceInputs(main, builder, maps);
    seedEach(builder, maps);
    divideByAll(main, builder, maps);
    for (auto [k, map] : llvm::enumerate(maps)) repeat(main, builder, k, map);
    replaceResults(main);
    for (mlir::Operation* op : llvm::reverse(body_)) op->erase();
    eraseDivisor(main);
    return success();
  }

  static llvm::StringRef textOf(mlir::Attribute attribute) {
    auto text = llvm::dyn_cast_if_present<mlir::StringAttr>(attribute);
    return text ? text.getValue() : llvm::StringRef();
  }

  void readMain(FuncOp main) {
    for (mlir::Operation& op : main.front().without_terminator())
      body_.push_back(&op);
    mlir::Operation* terminator = main.front().getTerminator();
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      results_.push_back(terminator->getOperand(i));
      SmallVector<Value> parts = {results_.back()};
      if (textOf(main.getResultAttr(i, nn::kNameAttr))
              .starts_with(kGradientPrefix))
        parts = partsOf(results_.back());
      for (Value part : parts) {
        places_[part].push_back(sums_.size());
        sums_.push_back({i, Value()});
      }
      if (textOf(main.getResultAttr(i, nn::kNameAttr)) == kTargetCountResult)
        count_ = results_.back().getDefiningOp<CallOp>();
    }
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      by_name_[textOf(main.getArgAttr(i, nn::kNameAttr))] = argument;
      if (textOf(main.getArgAttr(i, nn::kKindAttr)) != "input") continue;
      if (textOf(main.getArgAttr(i, nn::kNameAttr)) == kLossDivisorInput)
        divisor_ = argument;
      if (textOf(main.getArgAttr(i, nn::kRoleAttr)) == "seed") seed_ = argument;
      auto dims = llvm::dyn_cast_if_present<mlir::ArrayAttr>(
          main.getArgAttr(i, kDimsAttr));
      if (dims && !dims.empty() && isBatch(textOf(dims[0])))
        batched_.push_back(argument);
    }
  }

  // True if the first segment of a dimension's name is the batch.
  static bool isBatch(llvm::StringRef dim) {
    return dim.split('*').first == "B";
  }

  // Reshapes inputs from [rows, ...] to [microbatches, rows, ...].
  void viewInputs(FuncOp main) {
    mlir::Builder builder(main.getContext());
    for (mlir::BlockArgument input : batched_) {
      auto type = llvm::cast<RankedTensorType>(input.getType());
      SmallVector<int64_t> shape(type.getShape()), all = shape;
      all[0] *= microbatches;
      shape.insert(shape.begin(), microbatches);
      const unsigned i = input.getArgNumber();
      main.setArgAttr(i, nn::kViewOfAttr, mlir::TypeAttr::get(type.clone(all)));
      SmallVector<mlir::Attribute> dims(
          main.getArgAttrOfType<mlir::ArrayAttr>(i, kDimsAttr).getValue());
      dims.insert(dims.begin(), builder.getStringAttr(
                                    std::to_string(microbatches.getValue())));
      main.setArgAttr(i, kDimsAttr, builder.getArrayAttr(dims));
      microbatch_types_.push_back(type);
      input.setType(type.clone(shape));
    }
  }

  void sliceInputs(FuncOp main, mlir::OpBuilder& builder,
                   llvm::MutableArrayRef<mlir::IRMapping> maps) {
    nn::MathBuilder math(builder, main.getLoc());
    for (auto [k, map] : llvm::enumerate(maps))
      for (auto [input, type] : llvm::zip_equal(batched_, microbatch_types_)) {
        SmallVector<int64_t> starts(type.getRank() + 1, 0),
            strides(type.getRank() + 1, 1), shape(type.getShape());
        starts[0] = k;
        shape.insert(shape.begin(), 1);
        Value rows = nn::SliceOp::create(
            builder, input.getLoc(), type.clone(shape), input, starts, strides);
        map.map(input, math.reshape(rows, type.getShape()));
      }
  }

  // Random numbers depend on the seed and the position in the microbatch, so
  // each microbatch gets another seed.
  void seedEach(mlir::OpBuilder& builder,
                llvm::MutableArrayRef<mlir::IRMapping> maps) {
    if (!seed_) return;
    nn::MathBuilder math(builder, seed_.getLoc());
    for (auto [k, map] : llvm::enumerate(maps))
      map.map(seed_, math.addInt(seed_, static_cast<int64_t>(k) * kSeedStep));
  }

  // Counts the targets of all microbatches before the first microbatch.
  void divideByAll(FuncOp main, mlir::OpBuilder& builder,
                   llvm::MutableArrayRef<mlir::IRMapping> maps) {
    if (!count_ || !divisor_) return;
    nn::MathBuilder math(builder, main.getLoc());
    Value total;
    for (mlir::IRMapping& map : maps) {
      Value count = builder.clone(*count_, map)->getResult(0);
      total = total ? math.addInt(total, count) : count;
    }
    total = mlir::arith::MaxSIOp::create(
        builder, main.getLoc(), total,
        math.constantInt(nn::MathBuilder::typeOf(total), 1));
    for (mlir::IRMapping& map : maps) map.map(divisor_, total);
  }

  void repeat(FuncOp main, mlir::OpBuilder& builder, int64_t k,
              mlir::IRMapping& map) {
    for (auto& [argument, value] : updated_) map.map(argument, value);
    for (mlir::Operation* op : body_) {
      if (op == count_) continue;  // already cloned
      mlir::Operation* own = builder.clone(*op, map);
      if (llvm::isa<CallOp>(own))
        own->setAttr(kMicrobatchAttr, builder.getI64IntegerAttr(k));
      // Add gradients as soon as they are computed.
      addUp(main, builder, op->getResults(), map);
    }
    addUp(main, builder, main.getArguments(), map);
    if (noise_scale) addSquares(main, builder, map);
    for (Sum& sum : sums_) {
      llvm::StringRef name =
          textOf(main.getResultAttr(sum.result, nn::kUpdatesAttr));
      if (name.empty()) continue;
      sum.value = map.lookupOrDefault(results_[sum.result]);
      updated_[by_name_.lookup(name)] = sum.value;
    }
  }

  void addUp(FuncOp main, mlir::OpBuilder& builder, mlir::ValueRange values,
             mlir::IRMapping& map) {
    nn::MathBuilder math(builder, main.getLoc());
    for (Value given : values) {
      for (unsigned i : places_.lookup(given)) {
        Sum& sum = sums_[i];
        llvm::StringRef name =
            textOf(main.getResultAttr(sum.result, nn::kNameAttr));
        const bool gradient = name.consume_front(kGradientPrefix);
        Value value = map.lookupOrDefault(given);
        if (gradient) value = math.widen(value);
        const bool adds = sum.value && (gradient || name == "loss");
        sum.value = adds ? math.add(sum.value, value) : value;
      }
    }
  }

  // Adds the squares of this microbatch's gradients.
  void addSquares(FuncOp main, mlir::OpBuilder& builder, mlir::IRMapping& map) {
    nn::MathBuilder math(builder, main.getLoc());
    for (auto [i, gradient] : llvm::enumerate(results_)) {
      if (!textOf(main.getResultAttr(i, nn::kNameAttr))
               .starts_with(kGradientPrefix))
        continue;
      Value square = squareOf(math, map.lookupOrDefault(gradient));
      small_ = small_ ? math.add(small_, square) : square;
    }
  }

  // Returns the summands of this gradient if they belong to different pipeline
  // stages: each stage sums its own and sends the sum once.
  static SmallVector<Value> partsOf(Value gradient) {
    SmallVector<Value> parts, open = {gradient};
    llvm::SmallSetVector<mlir::Attribute, 2> stages;
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (auto add = value.getDefiningOp<mlir::arith::AddFOp>()) {
        open.append({add.getRhs(), add.getLhs()});
        continue;
      }
      parts.push_back(value);
      mlir::Operation* producer = value.getDefiningOp();
      stages.insert(producer ? producer->getAttr(kStageAttr)
                             : mlir::Attribute());
    }
    return stages.size() > 1 ? parts : SmallVector<Value>{gradient};
  }

  void replaceResults(FuncOp main) {
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    nn::MathBuilder math(builder, main.getLoc());
    SmallVector<Value> whole(results_.size());
    for (const Sum& sum : sums_) {
      Value& value = whole[sum.result];
      value = value ? math.add(value, sum.value) : sum.value;
    }
    Value big;
    for (auto [i, gradient] : llvm::enumerate(whole)) {
      if (!small_ || !textOf(main.getResultAttr(i, nn::kNameAttr))
                          .starts_with(kGradientPrefix))
        continue;
      Value square = squareOf(math, gradient);
      big = big ? math.add(big, square) : square;
    }
    for (unsigned i = results_.size(); i-- > 0;) {
      if (textOf(main.getResultAttr(i, nn::kNameAttr)) == kTargetCountResult) {
        terminator->eraseOperand(i);
        (void)main.eraseResult(i);
      } else {
        terminator->setOperand(i, whole[i]);
      }
    }
    main.setType(mlir::FunctionType::get(&getContext(),
                                         main.front().getArgumentTypes(),
                                         terminator->getOperandTypes()));
    if (small_) addNoiseResults(main, small_, big, microbatches);
  }

  void eraseDivisor(FuncOp main) {
    if (divisor_) (void)main.eraseArgument(divisor_.getArgNumber());
  }

  SmallVector<mlir::Operation*> body_;  // of one microbatch
  SmallVector<Value> results_;          // of one microbatch
  // Running sum of a result, or of a summand of it.
  struct Sum {
    unsigned result;
    Value value;
  };
  SmallVector<Sum> sums_;
  llvm::DenseMap<Value, SmallVector<unsigned>> places_;  // indices into sums_
  llvm::StringMap<mlir::BlockArgument> by_name_;
  SmallVector<mlir::BlockArgument> batched_;
  SmallVector<RankedTensorType> microbatch_types_;  // parallel to batched_
  mlir::BlockArgument divisor_, seed_;              // null if absent
  CallOp count_;
  Value small_;  // the sum of squares of all microbatches' gradients
  llvm::DenseMap<Value, Value> updated_;  // buffers, as last updated
};

}  // namespace
}  // namespace partita::autodiff
