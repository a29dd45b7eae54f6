// Gradients of mixtures of experts and of grouped products.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "dialects/nn/experts.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

struct GroupedDot
    : GradientOpInterface::ExternalModel<GroupedDot, nn::GroupedDotOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto dot = mlir::cast<nn::GroupedDotOp>(op);
    const Value g = gradient.ofResult();
    if (gradient.wants(0))
      gradient.add(
          0, nn::GroupedDotOp::create(gradient.builder(), gradient.loc(),
                                      dot.getX().getType(), g, dot.getIds(),
                                      dot.getW(), !dot.getTransposed()));
    if (!gradient.wants(2)) return success();
    Value rows = dot.getX(), grads = g;
    if (dot.getTransposed()) std::swap(rows, grads);
    gradient.add(2, nn::GroupedDotWeightGradOp::create(
                        gradient.builder(), gradient.loc(),
                        dot.getW().getType(), rows, dot.getIds(), grads));
    return success();
  }
};

struct Experts : GradientOpInterface::ExternalModel<Experts, nn::ExpertsOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto experts = mlir::cast<nn::ExpertsOp>(op);
    const int first = nn::ExpertParameters(experts).first;
    const mlir::ValueRange parameters = op->getOperands().drop_front(first);
    auto all = nn::ExpertsGradOp::create(
        gradient.builder(), gradient.loc(), experts.getX().getType(),
        experts.getWeights().getType(), parameters.getTypes(), experts.getX(),
        experts.getIds(), experts.getWeights(), gradient.ofResult(),
        experts.getGate(), experts.getUp(), experts.getDown(),
        experts.getGateBias(), experts.getUpBias(), experts.getDownBias(),
        experts.getActivation());
    if (gradient.wants(0)) gradient.add(0, all.getXGrad());
    if (gradient.wants(2)) gradient.add(2, all.getWeightsGrad());
    for (auto [i, grad] : llvm::enumerate(all.getParameterGrads()))
      if (gradient.wants(first + i)) gradient.add(first + i, grad);
    return success();
  }
};

}  // namespace

void registerExpertGradients(mlir::MLIRContext* context) {
  nn::GroupedDotOp::attachInterface<GroupedDot>(*context);
  nn::ExpertsOp::attachInterface<Experts>(*context);
}

}  // namespace partita::autodiff
