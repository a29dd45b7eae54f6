// A slice takes a range of parts of a dimension. The dimension is outer x parts
// x inner. Reshapes preserve this form; they only move sizes between outer and
// inner. First all values that the slices depend on are visited. If slices can
// pass all of them, the values are copied once per slice.
#include "compiler/sharding/hoist_slices.h"

#include <numeric>

#include "compiler/sharding/dim_groups.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::sharding {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Operation;
using mlir::OpOperand;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

// Dimension `dim` as outer x parts x inner. `parts` is the same for all values
// of one hoist.
struct Parts {
  int64_t dim = 0, outer = 1, inner = 1;

  bool operator==(const Parts& other) const {
    return dim == other.dim && outer == other.outer && inner == other.inner;
  }
};

struct Range {
  int64_t start = 0, count = 0;
};

class Hoist {
 public:
  Hoist(Value root, IsStored is_stored) : root_(root), is_stored_(is_stored) {}

  // True if all uses of the root are slices that can move up.
  bool find() {
    if (!findSlices() || !visit(root_, {dim_, 1, size_ / parts_}) || !stored_)
      return false;
    // A value with other users would be computed twice.
    for (auto& [value, parts] : visited_) {
      if (isLeaf(value) || value == root_) continue;
      for (Operation* user : value.getUsers())
        if (!llvm::any_of(user->getResults(),
                          [&](Value result) { return visited_.count(result); }))
          return false;
    }
    return true;
  }

  int64_t replaceSlices(llvm::DenseSet<Operation*>& views) {
    for (auto& [slice, range] : slices_) {
      built_.clear();
      slice.replaceAllUsesWith(build(root_, range, views));
      slice.erase();
    }
    return slices_.size();
  }

 private:
  bool findSlices() {
    auto type = mlir::dyn_cast<RankedTensorType>(root_.getType());
    if (!type || root_.use_empty()) return false;
    int64_t unit = 0;
    for (Operation* user : root_.getUsers()) {
      auto slice = mlir::dyn_cast<nn::SliceOp>(user);
      if (!slice || llvm::any_of(slice.getStrides(),
                                 [](int64_t stride) { return stride != 1; }))
        return false;
      ArrayRef<int64_t> taken = slice.getType().getShape();
      int64_t cut = -1;
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        if (taken[dim] == type.getDimSize(dim)) continue;
        if (cut >= 0) return false;
        cut = dim;
      }
      if (cut < 0 || taken[cut] == 0 || (dim_ >= 0 && cut != dim_))
        return false;
      dim_ = cut;
      slices_.push_back({slice, {slice.getStarts()[cut], taken[cut]}});
      unit = std::gcd(std::gcd(unit, slice.getStarts()[cut]), taken[cut]);
    }
    size_ = type.getDimSize(dim_);
    unit = std::gcd(unit, size_);
    parts_ = size_ / unit;
    for (auto& [slice, range] : slices_)
      range = {range.start / unit, range.count / unit};
    return arePartition();
  }

  // True if there are at least two slices and each part is taken exactly once,
  // so that no work is added.
  bool arePartition() const {
    SmallVector<bool> taken(parts_, false);
    for (const auto& [slice, range] : slices_)
      for (int64_t i = range.start; i < range.start + range.count; ++i) {
        if (taken[i]) return false;
        taken[i] = true;
      }
    return slices_.size() > 1;
  }

  static bool isLeaf(Value value) {
    return mlir::isa<mlir::BlockArgument>(value) ||
           value.getDefiningOp<mlir::arith::ConstantOp>();
  }

  bool visit(OpOperand& operand, const Parts& parts) {
    passed_.insert(&operand);
    return visit(operand.get(), parts);
  }

  bool visit(Value value, const Parts& parts) {
    auto [place, inserted] = visited_.insert({value, parts});
    if (!inserted) return place->second == parts;
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
      // Hoisting helps only if the parts are the first factor of the argument's
      // dimension.
      stored_ |= parts.outer == 1;
      return parts.outer == 1 && is_stored_(argument);
    }
    if (isLeaf(value)) return true;
    Operation* op = value.getDefiningOp();
    if (op->hasTrait<mlir::OpTrait::Elementwise>() && op->getNumResults() == 1)
      return llvm::all_of(op->getOpOperands(), [&](OpOperand& operand) {
        return mlir::isa<RankedTensorType>(operand.get().getType()) &&
               visit(operand, parts);
      });
    return llvm::TypeSwitch<Operation*, bool>(op)
        .Case([&](nn::BroadcastOp op) { return visitBroadcast(op, parts); })
        .Case([&](nn::ReshapeOp op) { return visitReshape(op, parts); })
        .Case([&](nn::TransposeOp op) {
          return visit(op.getInputMutable(),
                       {op.getPerm()[parts.dim], parts.outer, parts.inner});
        })
        .Case([&](nn::DotGeneralOp op) { return visitDot(op, parts); })
        .Case([&](nn::ConvOp op) {
          const int64_t channel =
              op.getChannelsLast() ? typeOf(op.getResult()).getRank() - 1 : 1;
          return op.getGroups() == 1 && parts.dim == channel &&
                 visit(op.getWeightMutable(), {0, parts.outer, parts.inner});
        })
        .Default(false);
  }

  bool visitBroadcast(nn::BroadcastOp op, const Parts& parts) {
    for (auto [index, dim] : llvm::enumerate(op.getDims()))
      if (dim == parts.dim && typeOf(op.getInput()).getDimSize(index) != 1)
        return visit(op.getInputMutable(),
                     {static_cast<int64_t>(index), parts.outer, parts.inner});
    return true;  // broadcast along the dimension: repeats fewer times
  }

  bool visitReshape(nn::ReshapeOp op, const Parts& parts) {
    ArrayRef<int64_t> from = typeOf(op.getInput()).getShape(),
                      to = typeOf(op.getResult()).getShape();
    auto groups = groupDims(from, to);
    if (!groups) return false;
    for (const DimGroup& group : *groups) {
      if (parts.dim < group.to_begin || parts.dim >= group.to_end) continue;
      const int64_t outer =
          productOf(to, group.to_begin, parts.dim) * parts.outer;
      const int64_t inner =
          parts.inner * productOf(to, parts.dim + 1, group.to_end);
      for (int64_t dim = group.from_begin; dim < group.from_end; ++dim) {
        const int64_t before = productOf(from, group.from_begin, dim),
                      after = productOf(from, dim + 1, group.from_end);
        if (outer % before != 0 || inner % after != 0) continue;
        const Parts source = {dim, outer / before, inner / after};
        if (source.outer * parts_ * source.inner == from[dim])
          return visit(op.getInputMutable(), source);
      }
    }
    return false;
  }

  bool visitDot(nn::DotGeneralOp op, const Parts& parts) {
    int64_t dim = op.getLhsBatch().size();
    if (parts.dim < dim) return false;
    for (const bool left : {true, false}) {
      OpOperand& operand = left ? op.getLhsMutable() : op.getRhsMutable();
      ArrayRef<int64_t> batch = left ? op.getLhsBatch() : op.getRhsBatch(),
                        contract =
                            left ? op.getLhsContract() : op.getRhsContract();
      for (int64_t i = 0; i < typeOf(operand.get()).getRank(); ++i) {
        if (llvm::is_contained(batch, i) || llvm::is_contained(contract, i))
          continue;
        if (dim++ == parts.dim)
          return visit(operand, {i, parts.outer, parts.inner});
      }
    }
    return false;
  }

  // Builds the value restricted to a range of its parts.
  Value build(Value value, const Range& range,
              llvm::DenseSet<Operation*>& views) {
    if (Value known = built_.lookup(value)) return known;
    const Parts& parts = visited_.find(value)->second;
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[parts.dim] = parts.outer * range.count * parts.inner;
    const RankedTensorType type = typeOf(value).clone(shape);
    Value result;
    if (isLeaf(value)) {
      result = buildLeaf(value, parts, range, type, views);
    } else {
      Operation* op = value.getDefiningOp();
      SmallVector<Value> operands;
      for (OpOperand& operand : op->getOpOperands())
        operands.push_back(passed_.contains(&operand)
                               ? build(operand.get(), range, views)
                               : operand.get());
      mlir::OpBuilder builder(op);
      Operation* copy = builder.clone(*op);
      copy->setOperands(operands);
      copy->removeAttr(dist::kShardingsAttr);  // the sizes differ
      copy->getResult(0).setType(type);
      result = copy->getResult(0);
    }
    return built_[value] = result;
  }

  Value buildLeaf(Value value, const Parts& parts, const Range& range,
                  RankedTensorType type, llvm::DenseSet<Operation*>& views) {
    mlir::OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    mlir::SplatElementsAttr splat;
    if (mlir::matchPattern(value, mlir::m_Constant(&splat)))
      return mlir::arith::ConstantOp::create(builder, value.getLoc(),
                                             splat.resizeSplat(type));
    SmallVector<int64_t> viewed(typeOf(value).getShape());
    int64_t part_dim = parts.dim;
    viewed[part_dim] = parts_;
    if (parts.inner > 1)
      viewed.insert(viewed.begin() + part_dim + 1, parts.inner);
    if (parts.outer > 1)
      viewed.insert(viewed.begin() + part_dim++, parts.outer);
    auto view = nn::ReshapeOp::create(builder, value.getLoc(),
                                      type.clone(viewed), value);
    // Slices of unequal length leave the parameter's shape as it is: each part
    // would be a fragment.
    if (parts_ == static_cast<int64_t>(slices_.size())) views.insert(view);
    SmallVector<int64_t> starts(viewed.size(), 0), strides(viewed.size(), 1),
        taken(viewed);
    starts[part_dim] = range.start;
    taken[part_dim] = range.count;
    Value slice =
        nn::SliceOp::create(builder, value.getLoc(), type.clone(taken), view,
                            builder.getDenseI64ArrayAttr(starts),
                            builder.getDenseI64ArrayAttr(strides));
    return nn::ReshapeOp::create(builder, value.getLoc(), type, slice);
  }

  Value root_;
  IsStored is_stored_;
  SmallVector<std::pair<nn::SliceOp, Range>> slices_;
  int64_t dim_ = -1, size_ = 0, parts_ = 0;
  bool stored_ = false;
  llvm::MapVector<Value, Parts> visited_;
  llvm::DenseSet<OpOperand*> passed_;  // operands that slices pass through
  llvm::DenseMap<Value, Value> built_;
};

}  // namespace

int64_t hoistSlices(mlir::func::FuncOp function, IsStored is_stored,
                    llvm::DenseSet<Operation*>& views) {
  llvm::SetVector<Value> roots;
  function.walk([&](nn::SliceOp slice) { roots.insert(slice.getInput()); });
  int64_t count = 0;
  for (Value root : roots) {
    Hoist hoist(root, is_stored);
    if (hoist.find()) count += hoist.replaceSlices(views);
  }
  return count;
}

}  // namespace partita::sharding
