// Operations: pairs of a query and a key, times the products per pair. Unread
// bytes: sizes of arguments, minus the slices and rows that the body reads.
#include "compiler/kernels/kernel_work.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/core/attention_work.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/ordered.h"
#include "dialects/nn/row_share.h"

namespace partita::kernels {
namespace {

using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Pairs of a query and a key that it sees, per head.
template <typename Op>
int64_t pairsOf(Op op) {
  const int64_t queries = typeOf(op.getQ()).getDimSize(2),
                keys = typeOf(op.getV()).getDimSize(2);
  std::optional<int64_t> last = op.getCausalOffset();
  if (const std::optional<nn::BlockTable> blocks = nn::BlockTable::of(op)) {
    if (!op.getShift())
      return nn::countVisiblePairs(queries, keys, last, op.getWindow(),
                                   op.getSinks(), &*blocks);
    // With divided queries, a device has its share of all.
    const int64_t all = blocks->rows() * blocks->size();
    return nn::countVisiblePairs(all, keys, last, op.getWindow(), op.getSinks(),
                                 &*blocks) *
           queries / all;
  }
  // The last device has the most to do.
  if (op.getShift()) *last += std::max<int64_t>(0, keys - queries);
  return nn::countVisiblePairs(queries, keys, last, op.getWindow(),
                               op.getSinks());
}

template <typename Op>
int64_t operationsOf(Op op, const core::AttentionProducts& products) {
  const RankedTensorType q = typeOf(op.getQ()), v = typeOf(op.getV());
  return 2 * q.getDimSize(0) * q.getDimSize(1) * pairsOf(op) *
         (products.of_keys * q.getDimSize(3) +
          products.of_values * v.getDimSize(3));
}

// Each row is multiplied by one matrix, if the device holds that matrix.
template <typename Op>
int64_t operationsOfOrdered(Op op) {
  const int64_t all =
      2 * typeOf(op.getX()).getNumElements() * op.getType().getDimSize(1);
  const auto share =
      op->template getAttrOfType<mlir::FloatAttr>(nn::kRowShareAttr);
  if (!share) return all;
  return std::llround(share.getValueAsDouble() * static_cast<double>(all));
}

// Unread bytes of a value that only slices and gathers read; else 0.
int64_t unreadOf(Value value) {
  const int64_t all = exec::bufferBytes(typeOf(value));
  int64_t read = 0;
  for (mlir::OpOperand& use : value.getUses()) {
    mlir::Operation* user = use.getOwner();
    if (!llvm::isa<nn::SliceOp>(user) &&
        !(llvm::isa<nn::GatherOp>(user) && use.getOperandNumber() == 0))
      return 0;
    // The gathered type may be wider than the table's, whose size counts.
    read += typeOf(user->getResult(0)).getNumElements() *
            std::max<int64_t>(1, all / typeOf(value).getNumElements());
  }
  return std::max<int64_t>(all - read, 0);
}

}  // namespace

KernelWork workOf(mlir::func::FuncOp kernel) {
  KernelWork work;
  kernel.walk([&](nn::AttentionOp op) {
    work.operations += operationsOf(op, core::kAttention);
  });
  kernel.walk([&](nn::AttentionGradOp op) {
    work.operations += operationsOf(op, core::kAttentionGradient);
  });
  kernel.walk(
      [&](nn::OrderedDotOp op) { work.operations += operationsOfOrdered(op); });
  kernel.walk([&](nn::OrderedDotWeightGradOp op) {
    work.operations += operationsOfOrdered(op);
  });
  // The kernel reads its input for the mean, for the variance and for the
  // result, at any size, and keeps nothing in between, because a thread has
  // whole channels. Cache hits are not counted.
  kernel.walk([&](nn::BatchNormOp op) {
    if (op.getTraining())
      work.unread_bytes -= 2 * exec::bufferBytes(typeOf(op.getInput()));
  });
  for (Value argument : kernel.getArguments())
    if (typeOf(argument).getNumElements() > 0)
      work.unread_bytes += unreadOf(argument);
  return work;
}

KernelWork workOf(mlir::func::FuncOp kernel, const exec::KernelPart& part) {
  KernelWork work;
  kernel.walk([&](nn::AttentionGradOp op) {
    work.operations +=
        operationsOf(op, {part.products_of_keys, part.products_of_values});
  });
  work.unread_bytes = part.untouched;
  return work;
}

void setWork(exec::LaunchOp launch, const KernelWork& work) {
  launch.removeOperationsAttr();
  launch.removeUnreadAttr();
  if (work.operations != 0) launch.setOperations(work.operations);
  if (work.unread_bytes != 0) launch.setUnread(work.unread_bytes);
}

}  // namespace partita::kernels
