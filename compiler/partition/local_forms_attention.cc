// Local forms of attention and its gradient.
#include "compiler/partition/local_form.h"
#include "compiler/partition/local_forms.h"
#include "compiler/partition/ring_attention.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/math_builder.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;

// Attention and its gradient. If queries are divided, a device adds the number
// of its first query to the positions of its queries, and likewise for heads
// that have a table of blocks each.
template <typename Op>
struct AttentionForm
    : LocalFormOpInterface::ExternalModel<AttentionForm<Op>, Op> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    SmallVector<Value> operands = form.operands;
    const bool is_ring = isRing(op, form);
    if (llvm::isa<nn::AttentionGradOp>(op) || is_ring) clean(form, operands);
    if (is_ring) {
      if (auto grad = llvm::dyn_cast<nn::AttentionGradOp>(op);
          grad && !grad.getLse())
        return op->emitOpError(
            "expected the operand 'lse' for a ring, found none; take another "
            "'attention' in the plan, or let the forward attention return it");
      return buildRing(llvm::cast<Op>(op), form, operands);
    }
    SmallVector<mlir::Type> results;
    for (size_t i = 0; i < op->getNumResults(); ++i)
      results.push_back(form.resultType(i));
    const auto firstOf = [&](int dim) -> Value {
      const core::DimSharding& rows = form.sharding.operands[0].dims[dim];
      if (rows.axes.empty()) return {};
      return form.firstRow(form.globalShape(op->getOperand(0))[dim], rows);
    };
    auto whole = llvm::cast<Op>(op);
    Value first, head;
    if (whole.getCausalOffset() || whole.getBlocks()) first = firstOf(2);
    if (whole.getBlocks() &&
        llvm::cast<RankedTensorType>(whole.getBlocks()->getType())
                .getDimSize(0) > 1)
      head = firstOf(1);
    auto local = llvm::cast<Op>(cloneLocally(form, operands, results));
    mlir::OpBuilder::InsertionGuard guard(form.builder);
    form.builder.setInsertionPoint(local);
    nn::MathBuilder math(form.builder, form.loc());
    const auto addTo = [&](mlir::MutableOperandRange operand, Value number) {
      if (!number) return;
      operand.assign(operand.empty() ? number
                                     : math.addInt(operand[0].get(), number));
    };
    addTo(local.getShiftMutable(), first);
    addTo(local.getFirstHeadMutable(), head);
    return SmallVector<Value>(local->getResults());
  }

 private:
  static bool isRing(mlir::Operation* op, const LocalForm& form) {
    auto way =
        op->getAttrOfType<mlir::IntegerAttr>(sharding::kLongAttentionAttr);
    return way &&
           way.getInt() == static_cast<int>(core::LongAttention::kRing) &&
           !form.sharding.operands[0].dims[2].axes.empty();
  }

  // Gradients of keys sum over queries; the gradient of the bias sums over all
  // dimensions that the bias lacks. Rows beyond the end must contribute
  // nothing, so their weights are exp(score - inf). In a ring, other devices
  // read the rows.
  static void clean(const LocalForm& form, SmallVector<Value>& operands) {
    Value lse;
    if (auto grad = llvm::dyn_cast<nn::AttentionGradOp>(form.op))
      lse = grad.getLse();
    for (auto [i, operand] : llvm::enumerate(operands)) {
      const Value global = form.op->getOperand(i);
      const auto shape = form.globalShape(global);
      const mlir::TypedAttr neutral = neutralOf(
          lse && global == lse ? core::Reduction::kMin : core::Reduction::kSum,
          llvm::cast<RankedTensorType>(operand.getType()).getElementType());
      for (auto [dim, rows] : llvm::enumerate(form.sharding.operands[i].dims))
        if (!rows.axes.empty())
          operand = form.cleanRows(operand, dim, shape[dim], rows, neutral);
    }
  }
};

}  // namespace

void registerAttentionForms(mlir::MLIRContext* context) {
  nn::AttentionOp::attachInterface<AttentionForm<nn::AttentionOp>>(*context);
  nn::AttentionGradOp::attachInterface<AttentionForm<nn::AttentionGradOp>>(
      *context);
}

}  // namespace partita::partition
