// Adds the loss and batch statistics to the results; see passes.td.
#include "compiler/autodiff/batch_statistics.h"
#include "compiler/autodiff/microbatches.h"
#include "compiler/autodiff/passes.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/result_names.h"
#include "mlir/IR/Matchers.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_ATTACHLOSSPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

class AttachLoss : public impl::AttachLossPassBase<AttachLoss> {
 public:
  using AttachLossPassBase::AttachLossPassBase;

  void runOnOperation() override {
    if (microbatches < 1) {
      getOperation().emitError("microbatches: expected at least 1, found ")
          << microbatches.getValue();
      return signalPassFailure();
    }
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (mlir::failed(run(main))) signalPassFailure();
  }

 private:
  LogicalResult run(FuncOp main) {
    FailureOr<unsigned> chosen = chooseOutput(main);
    if (mlir::failed(chosen)) return failure();
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    nn::MathBuilder math(builder, terminator->getLoc());
    FailureOr<Value> value =
        buildWeighedLoss(main, math, terminator->getOperand(*chosen));
    if (mlir::failed(value)) return failure();
    value = addAuxiliaryLoss(main, math, *value);
    if (mlir::failed(value)) return failure();
    replaceResults(main, *value);
    return returnStatistics(main);
  }

  FailureOr<unsigned> chooseOutput(FuncOp main) {
    SmallVector<std::string> names;
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      names.push_back(name ? name.getValue().str() : "");
      if (output.empty() || names.back() == output) return i;
    }
    return main.emitError("expected an output named '")
               << output << "', found: " << llvm::join(names, ", "),
           failure();
  }

  // Returns the result of this name; null if there is none.
  static Value findResult(FuncOp main, llvm::StringRef wanted) {
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (auto name =
              main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
          name && name.getValue() == wanted)
        return main.front().getTerminator()->getOperand(i);
    return {};
  }

  // Returns the loss of the targets, or with a teacher the weighed sum of this
  // loss and the distance from the teacher.
  FailureOr<Value> buildWeighedLoss(FuncOp main, nn::MathBuilder& math,
                                    Value y) {
    const Value distance = findResult(main, nn::kDistillationLossResult);
    if (!distance) return buildLoss(main, math, y);
    const Value weight = findResult(main, nn::kTargetLossWeightResult);
    mlir::DenseFPElementsAttr constant;
    if (weight && mlir::matchPattern(weight, mlir::m_Constant(&constant)) &&
        constant.isSplat() && constant.getSplatValue<llvm::APFloat>().isZero())
      return distance;
    FailureOr<Value> value = buildLoss(main, math, y);
    if (mlir::failed(value)) return failure();
    return math.add(weight ? math.multiply(*value, weight) : *value, distance);
  }

  FailureOr<Value> buildLoss(FuncOp main, nn::MathBuilder& math, Value y) {
    auto type = llvm::cast<RankedTensorType>(y.getType());
    if (!llvm::isa<mlir::FloatType>(type.getElementType()))
      return main.emitError("expected a loss of floats, found an output of ")
                 << type << "; --loss-output names another",
             failure();
    if (loss == "cross-entropy") return crossEntropy(main, math, y);
    if (loss == "mse") return squaredError(main, math, y);
    if (loss != "none")
      return main.emitError(
                 "expected the loss to be cross-entropy, mse or none, found '")
                 << loss << "'",
             failure();
    if (microbatches > 1)
      return main.emitError(
                 "microbatches: expected a loss whose parts add up, "
                 "cross-entropy or mse, found the model's own, which may be a "
                 "mean, a sum or anything else of the batch; name an output "
                 "with --loss-output, or leave microbatches out"),
             failure();
    if (type.getRank() == 0 && type.getElementType().isF32()) return y;
    return main.emitError(
               "expected an output that is a loss, a scalar f32, "
               "found ")
               << type << "; --loss cross-entropy or mse makes one of it",
           failure();
  }

  // Adds the model's own auxiliary loss, if it has one. The step's is the mean
  // over microbatches.
  FailureOr<Value> addAuxiliaryLoss(FuncOp main, nn::MathBuilder& math,
                                    Value value) {
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (!name || name.getValue() != nn::kAuxiliaryLossResult) continue;
      Value loss = main.front().getTerminator()->getOperand(i);
      if (loss.getType() != value.getType())
        return main.emitError("expected the output '")
                   << nn::kAuxiliaryLossResult << "' to be a scalar f32, found "
                   << loss.getType(),
               failure();
      if (microbatches > 1)
        loss = math.divide(loss, static_cast<double>(microbatches));
      value = math.add(value, loss);
    }
    return value;
  }

  // Returns the mean over positions whose target counts.
  FailureOr<Value> crossEntropy(FuncOp main, nn::MathBuilder& math, Value y) {
    auto type = llvm::cast<RankedTensorType>(y.getType());
    if (type.getRank() < 1)
      return main.emitError(
                 "expected an output [..., classes] for the cross-entropy, "
                 "found ")
                 << type,
             failure();
    auto targets_type =
        RankedTensorType::get(type.getShape().drop_back(), math.i64());
    Value targets = addInput(main, "targets", targets_type);
    mlir::OpBuilder builder(main.front().getTerminator());
    const mlir::Location loc = y.getLoc();
    auto losses_type =
        RankedTensorType::get(targets_type.getShape(), builder.getF32Type());
    Value losses =
        nn::CrossEntropyOp::create(builder, loc, losses_type, y, targets,
                                   builder.getI64IntegerAttr(ignore_index),
                                   builder.getF64FloatAttr(label_smoothing));
    Value count;
    if (microbatches > 1) {
      count_ = countInFunction(main, builder, targets);
      count = addInput(main, kLossDivisorInput,
                       llvm::cast<RankedTensorType>(count_.getType()));
    } else {
      count = mlir::arith::MaxSIOp::create(
          builder, loc, countTargets(math, targets),
          math.constantInt(RankedTensorType::get({}, math.i64()), 1));
    }
    count = math.toFloat(count, builder.getF32Type());
    return math.divide(sum(math, losses), count);
  }

  // Counts targets other than `ignore_index` in i64, which no precision rounds.
  Value countTargets(nn::MathBuilder& math, Value targets) {
    const RankedTensorType type = nn::MathBuilder::typeOf(targets);
    return sum(math, math.select(
                         math.compare(mlir::arith::CmpIPredicate::ne, targets,
                                      math.constantInt(type, ignore_index)),
                         math.constantInt(type, 1), math.constantInt(type, 0)));
  }

  // Uses a function of its own, because the counts are needed before the
  // gradients of any microbatch.
  Value countInFunction(FuncOp main, mlir::OpBuilder& builder, Value targets) {
    FuncOp function =
        FuncOp::create(main.getLoc(), "count_targets",
                       mlir::FunctionType::get(
                           &getContext(), targets.getType(),
                           RankedTensorType::get({}, builder.getI64Type())));
    function.setPrivate();
    mlir::OpBuilder body =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(body, main.getLoc());
    mlir::func::ReturnOp::create(body, main.getLoc(),
                                 countTargets(math, function.getArgument(0)));
    mlir::SymbolTable(getOperation()).insert(function);
    return mlir::func::CallOp::create(builder, main.getLoc(), function, targets)
        .getResult(0);
  }

  FailureOr<Value> squaredError(FuncOp main, nn::MathBuilder& math, Value y) {
    auto type = llvm::cast<RankedTensorType>(y.getType());
    Value targets = addInput(main, "targets", type);
    Value difference = math.widen(math.subtract(y, targets));
    Value total = sum(math, math.multiply(difference, difference));
    if (!nn::MathBuilder::typeOf(total).getElementType().isF32())
      return main.emitError("expected an output of f32 or narrower, found ")
                 << type,
             failure();
    return math.divide(total, static_cast<double>(type.getNumElements()));
  }

  static Value sum(nn::MathBuilder& math, Value x) {
    SmallVector<int64_t> dims;
    for (int64_t i = 0; i < nn::MathBuilder::typeOf(x).getRank(); ++i)
      dims.push_back(i);
    return dims.empty() ? x : math.reduce(nn::ReduceKind::sum, x, dims);
  }

  // Inserts after the other inputs, which come before parameters.
  static Value addInput(FuncOp main, llvm::StringRef name,
                        RankedTensorType type) {
    unsigned index = 0;
    while (index < main.getNumArguments()) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(index, nn::kKindAttr);
      if (kind && kind.getValue() != "input") break;
      ++index;
    }
    mlir::Builder builder(main.getContext());
    (void)main.insertArgument(
        index, type,
        builder.getDictionaryAttr(
            {builder.getNamedAttr(nn::kKindAttr,
                                  builder.getStringAttr("input")),
             builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name))}),
        main.getLoc());
    return main.getArgument(index);
  }

  void replaceResults(FuncOp main, Value value) {
    mlir::Operation* terminator = main.front().getTerminator();
    const SmallVector<std::pair<mlir::DictionaryAttr, Value>> updates =
        bufferUpdates(main);
    while (main.getNumResults() > 0)
      (void)main.eraseResult(main.getNumResults() - 1);
    terminator->setOperands({});
    addResult(main, "loss", value);
    if (count_) addResult(main, kTargetCountResult, count_);
    for (const auto& [attributes, update] : updates) {
      const unsigned index = main.getNumResults();
      (void)main.insertResult(index, update.getType(), attributes);
      terminator->insertOperands(index, update);
    }
  }

  // Results that update buffers, such as the ranges of activations that are
  // rounded. States of a model that is run step by step are not trained.
  static SmallVector<std::pair<mlir::DictionaryAttr, Value>> bufferUpdates(
      FuncOp main) {
    llvm::SmallDenseSet<mlir::Attribute> buffers;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
          kind && kind.getValue() == "buffer")
        buffers.insert(main.getArgAttr(i, nn::kNameAttr));
    SmallVector<std::pair<mlir::DictionaryAttr, Value>> updates;
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (mlir::Attribute name = main.getResultAttr(i, nn::kUpdatesAttr);
          name && buffers.contains(name))
        updates.push_back({main.getResultAttrDict(i),
                           main.front().getTerminator()->getOperand(i)});
    return updates;
  }

  static void addResult(FuncOp main, llvm::StringRef name, Value value) {
    mlir::Builder builder(main.getContext());
    const unsigned index = main.getNumResults();
    (void)main.insertResult(index, value.getType(),
                            builder.getDictionaryAttr(builder.getNamedAttr(
                                nn::kNameAttr, builder.getStringAttr(name))));
    main.front().getTerminator()->insertOperands(index, value);
  }

  Value count_;  // number of counted targets; null with one microbatch
};

}  // namespace
}  // namespace partita::autodiff
