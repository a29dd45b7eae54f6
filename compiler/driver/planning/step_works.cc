// Finds kernels as fusion does, before library calls are separated.
#include "compiler/driver/planning/step_works.h"

#include "compiler/kernels/float8_factors.h"
#include "compiler/kernels/fusion_groups.h"
#include "compiler/kernels/kernel_work.h"
#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/SetVector.h"

namespace partita::driver {
namespace {

using kernels::FusionRole;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;
using planner::StepWork;
using planner::WorkKind;

int64_t bytesOf(Value value) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

// The value that is read from memory through index maps: the smallest one on
// the way. Null if nothing is read, as for an iota or a constant.
Value sourceOf(Value value, const kernels::FusionGroups& groups) {
  Value least = value;
  while (Operation* op = value.getDefiningOp()) {
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) return {};
    const FusionRole role = groups.roles.lookup(op);
    if (role != FusionRole::movement && role != FusionRole::view) break;
    if (op->getNumOperands() == 0) return {};
    value = op->getOperand(0);
    if (bytesOf(value) <= bytesOf(least)) least = value;
  }
  return least;
}

bool isReadOutside(Value value, llvm::ArrayRef<Operation*> group,
                   const kernels::FusionGroups& groups) {
  return llvm::any_of(value.getUsers(), [&](Operation* user) {
    if (llvm::is_contained(group, user)) return false;
    const FusionRole role = groups.roles.lookup(user);
    if (role != FusionRole::movement && role != FusionRole::view) return true;
    return llvm::any_of(user->getResults(), [&](Value moved) {
      return isReadOutside(moved, group, groups);
    });
  });
}

// The share of pairs of queries and keys that attend to each other.
template <typename Op>
double seenBy(Op op) {
  const auto rows = [](Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(2);
  };
  const int64_t queries = rows(op.getQ()), keys = rows(op.getK());
  if (queries == 0 || keys == 0) return 0;
  const std::optional<nn::BlockTable> blocks = nn::BlockTable::of(op);
  return static_cast<double>(nn::countVisiblePairs(
             queries, keys, op.getCausalOffset(), op.getWindow(), op.getSinks(),
             blocks ? &*blocks : nullptr)) /
         (static_cast<double>(queries) * static_cast<double>(keys));
}

StepWork workOf(llvm::ArrayRef<Operation*> group,
                const kernels::FusionGroups& groups,
                const sharding::Problem& problem) {
  StepWork work;
  Operation* head = group.back();
  work.kind = kindOf(head);
  if (work.kind != WorkKind::kStream) work.op = problem.operations.lookup(head);
  work.backward = llvm::isa<nn::AttentionGradOp, nn::ExpertsGradOp>(head);
  if (auto dot = llvm::dyn_cast<nn::DotGeneralOp>(head))
    work.float8 = kernels::matchFloat8Factors(dot).has_value();
  if (auto attention = llvm::dyn_cast<nn::AttentionOp>(head))
    work.seen = seenBy(attention);
  if (auto gradient = llvm::dyn_cast<nn::AttentionGradOp>(head))
    work.seen = seenBy(gradient);
  llvm::SetVector<int> reads, writes;
  for (Operation* op : group) {
    for (Value operand : op->getOperands())
      if (Value read = sourceOf(operand, groups);
          read && !llvm::is_contained(group, read.getDefiningOp()))
        reads.insert(problem.ids.lookup(read));
    for (Value result : op->getResults())
      if (isReadOutside(result, group, groups))
        writes.insert(problem.ids.lookup(result));
  }
  work.reads.assign(reads.begin(), reads.end());
  work.writes.assign(writes.begin(), writes.end());
  return work;
}

// Rows of the first operand that a window reads beyond its stride.
int64_t rowsBeyond(int64_t window, int64_t stride, int64_t dilation) {
  return std::max<int64_t>(0, (window - 1) * dilation + 1 - stride);
}

class Halos {
 public:
  explicit Halos(const sharding::Problem& problem) : problem_(problem) {}

  void add(Operation* op, int number) {
    if (auto conv = llvm::dyn_cast<nn::ConvOp>(op))
      add(conv, number, conv.getWeight(), /*transposed=*/false);
    if (auto conv = llvm::dyn_cast<nn::ConvInputGradOp>(op))
      add(conv, number, conv.getWeight(), /*transposed=*/true);
    if (auto conv = llvm::dyn_cast<nn::ConvWeightGradOp>(op))
      add(conv, number, conv.getResult(), /*transposed=*/false);
    if (auto pool = llvm::dyn_cast<nn::ReduceWindowOp>(op))
      for (auto [dim, window] : llvm::enumerate(pool.getWindow()))
        add(number, dim,
            rowsBeyond(window, pool.getStrides()[dim],
                       pool.getDilations()[dim]));
  }

  // The window has the sizes of the weight's last dimensions.
  template <typename Conv>
  void add(Conv conv, int number, Value weight, bool transposed) {
    const auto window =
        llvm::cast<mlir::RankedTensorType>(weight.getType()).getShape();
    for (size_t i = 0; i + 2 < window.size(); ++i) {
      const int64_t stride = conv.getStrides()[i];
      int64_t rows = rowsBeyond(window[i + 2], stride, conv.getDilations()[i]);
      if (transposed) rows = llvm::divideCeil(rows, stride);
      add(number, i + (conv.getChannelsLast() ? 1 : 2), rows);
    }
  }

  void add(int number, size_t dim, int64_t rows) {
    const core::DimFactors& factors =
        problem_.graph.ops[number].rule.operands[0][dim];
    if (rows > 0 && factors.size() == 1)
      halos_.push_back({number, factors[0], rows});
  }

  std::vector<planner::StepHalo> take() { return std::move(halos_); }

 private:
  const sharding::Problem& problem_;
  std::vector<planner::StepHalo> halos_;
};

}  // namespace

WorkKind kindOf(Operation* op) {
  if (llvm::isa<nn::DotGeneralOp>(op)) return WorkKind::kProduct;
  if (llvm::isa<nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(op))
    return WorkKind::kConvolution;
  if (llvm::isa<nn::AttentionOp, nn::AttentionGradOp>(op))
    return WorkKind::kAttention;
  if (llvm::isa<nn::ExpertsOp, nn::ExpertsGradOp>(op))
    return WorkKind::kExperts;
  return WorkKind::kStream;
}

FunctionWorks worksOf(FuncOp function, const sharding::Problem& problem) {
  FunctionWorks found;
  const kernels::FusionGroups groups =
      kernels::findFusionGroups(function.front());
  for (const auto& group : groups.groups) {
    found.works.push_back(workOf(group, groups, problem));
    found.heads.push_back(group.back());
  }
  return found;
}

std::vector<planner::StepHalo> halosOf(FuncOp function,
                                       const sharding::Problem& problem) {
  Halos halos(problem);
  for (Operation& op : function.front().without_terminator())
    if (auto number = problem.operations.find(&op);
        number != problem.operations.end())
      halos.add(&op, number->second);
  return halos.take();
}

}  // namespace partita::driver
