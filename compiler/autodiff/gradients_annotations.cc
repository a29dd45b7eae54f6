// Gradients of annotations. Values pass unchanged, and gradients get the
// annotation of their value.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "dialects/dist/dialect.h"

namespace partita::autodiff {
namespace {

using mlir::LogicalResult;
using mlir::success;

struct ConstraintModel
    : GradientOpInterface::ExternalModel<ConstraintModel, dist::ConstraintOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    if (gradient.wants(0))
      gradient.add(0,
                   dist::ConstraintOp::create(
                       gradient.builder(), gradient.loc(), gradient.ofResult(),
                       llvm::cast<dist::ConstraintOp>(op).getSharding()));
    return success();
  }
};

template <typename Op>
struct PassingModel : GradientOpInterface::ExternalModel<PassingModel<Op>, Op> {
  LogicalResult buildGradient(mlir::Operation*, Gradient& gradient) const {
    if (gradient.wants(0)) gradient.add(0, gradient.ofResult());
    return success();
  }
};

}  // namespace

void registerAnnotationGradients(mlir::MLIRContext* context) {
  dist::ConstraintOp::attachInterface<ConstraintModel>(*context);
  dist::BarrierOp::attachInterface<PassingModel<dist::BarrierOp>>(*context);
  dist::GroupOp::attachInterface<PassingModel<dist::GroupOp>>(*context);
  dist::ReshardOp::attachInterface<PassingModel<dist::ReshardOp>>(*context);
}

}  // namespace partita::autodiff
