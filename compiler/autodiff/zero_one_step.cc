// Calls the functions of zero_one_adam.h. Copies are made before the model, and
// updates after it.
#include "compiler/autodiff/zero_one_step.h"

#include "compiler/autodiff/device_marks.h"

namespace partita::autodiff {

using llvm::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

ZeroOneStep::ZeroOneStep(FuncOp main, nn::Signature& signature,
                         OptimizerKind kind, const StepScalars& scalars)
    : main_(main), kind_(kind), second_correction_(scalars.second_correction) {
  mlir::OpBuilder builder(main.front().getTerminator());
  nn::MathBuilder math(builder, main.getLoc());
  const auto addSum = [&](llvm::StringRef name) {
    return addStepState(signature, name, builder.getF32Type(), main.getLoc());
  };
  rate_sum_ = addSum(kRateSum);
  Value corrected = addSum(kCorrectedRateSum);
  rate_ = math.multiply(scalars.learning_rate, scalars.first_correction);
  next_rate_sum_ = math.add(rate_sum_, scalars.learning_rate);
  next_corrected_rate_sum_ = math.add(corrected, rate_);
  Value zero = math.constant(nn::MathBuilder::typeOf(corrected), 0);
  const bool ends = kind == OptimizerKind::kZeroOneExchange;
  addUpdate(signature, ends ? zero : next_rate_sum_, kRateSum);
  addUpdate(signature, ends ? zero : next_corrected_rate_sum_,
            kCorrectedRateSum);
}

void ZeroOneStep::update(nn::Signature& signature, const Trained& trained,
                         const Optimizer& optimizer, Value updated,
                         FunctionOf functionOf) {
  auto module = main_->getParentOfType<mlir::ModuleOp>();
  const mlir::Location loc = trained.parameter.getLoc();
  mlir::Type type = updated.getType(), stored = trained.parameter.getType();
  Value m = addState(signature, trained, kLocalMomentum, type),
        u = addState(signature, trained, kLocalSum, type),
        v = addState(signature, trained, "exp_avg_sq", type);

  mlir::OpBuilder begin = mlir::OpBuilder::atBlockBegin(&main_.front());
  if (mlir::Operation* last = second_correction_.getDefiningOp())
    begin.setInsertionPointAfter(last);
  const SmallVector<Value> copied = {updated, u, v, rate_sum_,
                                     second_correction_};
  auto copy = CallOp::create(
      begin, loc,
      functionOf(
          "own_parameter",
          [&] { return makeOwnParameter(module, optimizer, copied, stored); }),
      copied);
  Value parameter = trained.parameter;
  parameter.replaceAllUsesExcept(copy.getResult(0), copy);

  mlir::OpBuilder end(main_.front().getTerminator());
  const SmallVector<Value> taken = {m, trained.gradient, u, rate_, updated};
  auto step = CallOp::create(
      end, loc,
      functionOf("local_step",
                 [&] { return makeLocalStep(module, optimizer, taken); }),
      taken);
  step->setAttr(kOwnGradientAttr, end.getStringAttr(trained.name));
  const auto update = [&](Value value, const std::string& state) {
    addUpdate(signature, value, trained.name + "/" + state);
  };
  if (kind_ == OptimizerKind::kZeroOneLocal) {
    update(step.getResult(0), kLocalMomentum);
    update(step.getResult(1), kLocalSum);
    // The other programs change it, so it is no constant here.
    addUpdate(signature, updated,
              stored == type ? trained.name : trained.name + "/" + kMaster);
    return;
  }
  const SmallVector<Value> exchanged = {
      updated,        step.getResult(1),        v,
      next_rate_sum_, next_corrected_rate_sum_, second_correction_};
  auto result =
      CallOp::create(end, loc,
                     functionOf("exchange_step",
                                [&] {
                                  return makeExchangeStep(module, optimizer,
                                                          exchanged, stored);
                                }),
                     exchanged);
  result->setAttr(kOneBitMeanAttr, end.getStringAttr(trained.name));
  unsigned next = 0;
  addUpdate(signature, result.getResult(next++), trained.name);
  if (stored != type) update(result.getResult(next++), kMaster);
  update(result.getResult(next++), kLocalMomentum);
  update(result.getResult(next++), kLocalSum);
}

}  // namespace partita::autodiff
