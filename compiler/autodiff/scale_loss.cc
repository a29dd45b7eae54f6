// Adds the scaled loss and the states of dynamic loss scaling; see passes.td.
#include "compiler/autodiff/loss_scale.h"
#include "compiler/autodiff/passes.h"
#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_SCALELOSSPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

class ScaleLoss : public impl::ScaleLossPassBase<ScaleLoss> {
 public:
  using ScaleLossPassBase::ScaleLossPassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (name && name.getValue() == "loss") return scale(main, i);
    }
    main.emitError("expected a result named 'loss', found none");
    signalPassFailure();
  }

 private:
  void scale(FuncOp main, unsigned loss) {
    mlir::OpBuilder builder(main.front().getTerminator());
    nn::MathBuilder math(builder, main.getLoc());
    const auto real = RankedTensorType::get({}, builder.getF32Type()),
               count = RankedTensorType::get({}, builder.getI64Type());
    Value stored = addState(main, kLossScaleState, real);
    addState(main, kGoodStepsState, count);
    addState(main, kSkippedState, count);
    Value factor = math.select(math.compare(mlir::arith::CmpFPredicate::OEQ,
                                            stored, math.constant(real, 0)),
                               math.constant(real, initial), stored);
    Value value = main.front().getTerminator()->getOperand(loss);
    addResult(main, factor, kLossScaleResult, loss + 1);
    addResult(main, math.multiply(value, factor), kScaledLossResult, loss + 2);
  }

  static Value addState(FuncOp main, llvm::StringRef name,
                        RankedTensorType type) {
    mlir::Builder builder(main.getContext());
    const unsigned index = main.getNumArguments();
    (void)main.insertArgument(
        index, type,
        builder.getDictionaryAttr(
            {builder.getNamedAttr(nn::kKindAttr,
                                  builder.getStringAttr("state")),
             builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name)),
             builder.getNamedAttr(
                 nn::kSourceAttr,
                 nn::InitAttr::get(builder.getContext(), "zeros",
                                   builder.getF64FloatAttr(0), 0))}),
        main.getLoc());
    return main.getArgument(index);
  }

  static void addResult(FuncOp main, Value value, llvm::StringRef name,
                        unsigned index) {
    mlir::Builder builder(main.getContext());
    (void)main.insertResult(index, value.getType(),
                            builder.getDictionaryAttr(builder.getNamedAttr(
                                nn::kNameAttr, builder.getStringAttr(name))));
    main.front().getTerminator()->insertOperands(index, value);
  }
};

}  // namespace
}  // namespace partita::autodiff
