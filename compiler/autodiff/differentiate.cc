// Adds gradients to @main; see passes.td. The body of @main is reversed in
// place; other functions become pairs.
#include "compiler/autodiff/function_gradients.h"
#include "compiler/autodiff/join_padded.h"
#include "compiler/autodiff/loss_scale.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/recompute.h"
#include "compiler/autodiff/segments.h"
#include "compiler/autodiff/training_signature.h"
#include "dialects/nn/glob_list.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

llvm::StringRef argumentText(FuncOp main, unsigned i, llvm::StringRef name) {
  auto attr = main.getArgAttrOfType<mlir::StringAttr>(i, name);
  return attr ? attr.getValue() : llvm::StringRef();
}

// Gives each attention the result `lse`, which its gradient then reads.
void keepLse(mlir::ModuleOp module) {
  SmallVector<nn::AttentionOp> attentions;
  module.walk([&](nn::AttentionOp attention) {
    if (!attention.getLse()) attentions.push_back(attention);
  });
  for (nn::AttentionOp attention : attentions) {
    mlir::OpBuilder builder(attention);
    const mlir::RankedTensorType type = attention.getResult().getType();
    auto kept = nn::AttentionOp::create(
        builder, attention.getLoc(), type,
        mlir::RankedTensorType::get(type.getShape().drop_back(),
                                    builder.getF32Type()),
        attention.getQ(), attention.getK(), attention.getV(),
        attention.getBias(), attention.getShift(), attention.getQSegments(),
        attention.getKSegments(), attention.getFirstHead(),
        attention.getScaleAttr(), attention.getCausalOffsetAttr(),
        attention.getWindowAttr(), attention.getSinksAttr(),
        attention.getBlocksAttr(), attention.getBlockSizeAttr(),
        attention.getSoftcapAttr());
    kept->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
    attention.getResult().replaceAllUsesWith(kept.getResult());
    attention.erase();
  }
}

class Differentiate : public impl::DifferentiatePassBase<Differentiate> {
 public:
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (keep_lse) keepLse(getOperation());
    if (mlir::failed(run(main))) return signalPassFailure();
    mlir::RewritePatternSet patterns(&getContext());
    populateJoinPaddedPatterns(patterns);
    if (mlir::failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

 private:
  LogicalResult run(FuncOp main) {
    FailureOr<unsigned> loss = findLoss(main);
    FailureOr<Recompute> policy = findPolicy();
    if (mlir::failed(loss) || mlir::failed(policy) ||
        mlir::failed(findTrained(main)))
      return failure();
    {
      mlir::SymbolTable symbols(getOperation());
      outlineSegments(main, symbols);
    }
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    nn::MathBuilder math(builder, main.getLoc());
    Value loss_value = terminator->getOperand(*loss);
    if (scaled_) {  // only differentiation uses it
      terminator->eraseOperand(*loss);
      (void)main.eraseResult(*loss);
    }
    ValueMap gradients;
    gradients[loss_value] =
        math.constant(nn::MathBuilder::typeOf(loss_value), 1);
    FunctionGradients functions(getOperation(), *policy);
    llvm::DenseSet<Value> wanted;
    for (unsigned i : trained_) wanted.insert(main.getArgument(i));
    if (mlir::failed(reverse(
            main.front(), wanted, gradients,
            [&](mlir::OpBuilder& at, mlir::func::CallOp call,
                llvm::ArrayRef<Value> results, llvm::ArrayRef<bool> operands) {
              return functions.differentiate(at, call, results, operands);
            })))
      return failure();
    returnGradients(main, gradients);
    getOperation().walk(
        [](mlir::Operation* op) { op->removeDiscardableAttr(kRecomputeAttr); });
    return success();
  }

  FailureOr<unsigned> findLoss(FuncOp main) {
    std::optional<unsigned> found;
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (!name) continue;
      scaled_ = name.getValue() == kScaledLossResult;
      if (scaled_ || name.getValue() == "loss") found = i;
      if (scaled_) break;
    }
    if (!found)
      return main.emitError(
                 "expected a result named 'loss', found none; attach one with "
                 "--loss"),
             failure();
    auto type =
        llvm::cast<mlir::RankedTensorType>(main.getResultTypes()[*found]);
    if (type.getRank() == 0 && type.getElementType().isF32()) return *found;
    return main.emitError("expected the loss to be a scalar f32, found ")
               << type,
           failure();
  }

  FailureOr<Recompute> findPolicy() {
    if (auto policy = recomputeOf(recompute)) return *policy;
    return getOperation().emitError(
               "expected recompute to be none, selective or full, found '")
               << recompute << "'",
           failure();
  }

  LogicalResult findTrained(FuncOp main) {
    const nn::GlobList globs(train);
    SmallVector<llvm::StringRef> names;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto type =
          llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
      if (argumentText(main, i, nn::kKindAttr) != "parameter" ||
          !llvm::isa<mlir::FloatType>(type.getElementType()))
        continue;
      names.push_back(argumentText(main, i, nn::kNameAttr));
      if (globs.matches(names.back())) trained_.push_back(i);
    }
    const std::string pattern = nn::GlobList::firstUnmatched(train, names);
    if (!trained_.empty() && pattern.empty()) return success();
    auto error = main.emitError("expected a parameter whose name matches '")
                 << (pattern.empty() ? train : pattern) << "', found none";
    if (!names.empty()) error << "; one is '" << names.front() << "'";
    return error;
  }

  void returnGradients(FuncOp main, ValueMap& gradients) {
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    nn::MathBuilder math(builder, main.getLoc());
    nn::Signature signature(main);
    unsigned index = firstUpdate(signature);
    for (unsigned i : trained_) {
      Value argument = main.getArgument(i);
      Value gradient = gradients.lookup(argument);
      if (!gradient)
        gradient = math.constant(nn::MathBuilder::typeOf(argument), 0);
      const std::string name =
          "grad." + argumentText(main, i, nn::kNameAttr).str();
      addResult(signature, gradient, nn::kNameAttr, name, index++);
    }
  }

  SmallVector<unsigned> trained_;  // arguments of main
  bool scaled_ = false;            // the loss is the scaled one
};

}  // namespace
}  // namespace partita::autodiff
