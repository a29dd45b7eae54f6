// Runs devices in lockstep; collectives are plain loops over global indices.
#include "compiler/partition/spmd_interpreter.h"

#include <deque>
#include <limits>
#include <map>
#include <set>

#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using nn::Tensor;
using Index = SmallVector<int64_t>;

// As in the reference of nn.loop.
constexpr int64_t kMaxIterations = 1'000'000;

double combine(core::Reduction reduction, double a, double b) {
  switch (reduction) {
    case core::Reduction::kSum:
      return a + b;
    case core::Reduction::kProduct:
      return a * b;
    case core::Reduction::kMax:
      return std::isnan(a) ? a : std::max(a, b);
    case core::Reduction::kMin:
      return std::isnan(a) ? a : std::min(a, b);
    case core::Reduction::kAny:
      return a != 0 || b != 0;
    case core::Reduction::kAll:
      return a != 0 && b != 0;
  }
}

// Combines all tensors element by element.
Tensor reduceAll(core::Reduction reduction,
                 llvm::ArrayRef<const Tensor*> parts) {
  Tensor sum = *parts.front();
  for (const Tensor* part : parts.drop_front())
    for (int64_t i = 0; i < sum.size(); ++i) {
      if (sum.isFloat())
        sum.setFloat(i, combine(reduction, sum.getFloat(i), part->getFloat(i)));
      else
        sum.setInt(i, static_cast<int64_t>(
                          combine(reduction, sum.getInt(i), part->getInt(i))));
    }
  return sum;
}

// Returns the nearest integer of `bits` bits.
int64_t saturated(double value, unsigned bits) {
  const double limit = std::ldexp(1.0, static_cast<int>(bits) - 1);
  if (value <= -limit)
    return llvm::APInt::getSignedMinValue(bits).getSExtValue();
  if (value >= limit)
    return llvm::APInt::getSignedMaxValue(bits).getSExtValue();
  return static_cast<int64_t>(value);
}

// Builds a tensor of `type` from elements of other tensors. `source` maps an
// index of the result to a tensor, and changes the index to one of that tensor.
// If it returns null, the element is `fill`.
Tensor collect(RankedTensorType type, double fill,
               llvm::function_ref<const Tensor*(Index&)> source) {
  Tensor result(type);
  for (int64_t i = 0; i < result.size(); ++i) {
    Index index = result.index(i);
    if (const Tensor* from = source(index))
      result.copyFrom(i, *from, from->position(index));
    else if (fill != 0 && result.isFloat())
      result.setFloat(i, fill);
    else if (fill != 0 && !std::isnan(fill))
      result.setInt(i, saturated(fill, type.getElementTypeBitWidth()));
  }
  return result;
}

// Computes the result of a collective on one device, from its group's operands.
class Collective {
 public:
  Collective(Operation* op, const core::Mesh& mesh, const Everywhere& operand,
             int64_t position)
      : op_(op),
        type_(llvm::cast<RankedTensorType>(op->getResult(0).getType())) {
    auto axes =
        sharding::axesOf(op->getAttrOfType<dist::AxesAttr>("axes"), mesh);
    index_ = core::IndexAlong(mesh, axes, position);
    for (int64_t member : core::GroupAlong(mesh, axes, position))
      group_.push_back(&operand[member]);
    if (auto permute = llvm::dyn_cast<dist::PermuteOp>(op)) {
      const int64_t to = core::IndexAlong(
          mesh, sharding::axesOf(permute.getToAttr(), mesh), position);
      index_ = llvm::mod(to - static_cast<int64_t>(permute.getShift()),
                         static_cast<int64_t>(group_.size()));
    }
  }

  Tensor result() const {
    return llvm::TypeSwitch<Operation*, Tensor>(op_)
        .Case([&](dist::AllReduceOp op) {
          return reduceAll(op.getReduction(), group_);
        })
        .Case([&](dist::AllGatherOp op) { return gather(op.getDim()); })
        .Case([&](dist::ReduceScatterOp op) {
          return slice(op.getDim(), reduceAll(op.getReduction(), group_));
        })
        .Case([&](dist::AllSliceOp op) {
          return slice(op.getDim(), *group_[index_]);
        })
        .Case([&](dist::AllToAllOp op) {
          return exchangeDims(op.getSplitDim(), op.getConcatDim());
        })
        .Case([&](dist::ExchangeOp op) { return window(op); })
        .Case([&](dist::PermuteOp) { return *group_[index_]; })
        .Case([&](dist::BroadcastOp op) { return *group_[op.getRoot()]; });
  }

 private:
  int64_t blockOf(int64_t dim) const { return group_[0]->shape()[dim]; }

  Tensor gather(int64_t dim) const {
    return collect(type_, 0, [&](Index& index) {
      const Tensor* from = group_[index[dim] / blockOf(dim)];
      index[dim] %= blockOf(dim);
      return from;
    });
  }

  Tensor slice(int64_t dim, const Tensor& whole) const {
    return collect(type_, 0, [&](Index& index) -> const Tensor* {
      index[dim] += index_ * type_.getDimSize(dim);
      return index[dim] < whole.shape()[dim] ? &whole : nullptr;
    });
  }

  Tensor exchangeDims(int64_t split, int64_t concat) const {
    return collect(type_, 0, [&](Index& index) -> const Tensor* {
      const Tensor* from = group_[index[concat] / blockOf(concat)];
      index[concat] %= blockOf(concat);
      index[split] += index_ * type_.getDimSize(split);
      return index[split] < from->shape()[split] ? from : nullptr;
    });
  }

  Tensor window(dist::ExchangeOp op) const {
    const int64_t dim = op.getDim();
    return collect(type_, op.getFill().convertToDouble(),
                   [&](Index& index) -> const Tensor* {
                     const int64_t row =
                         index_ * op.getStep() + op.getOffset() + index[dim];
                     if (row < 0 || row >= static_cast<int64_t>(op.getSize()))
                       return nullptr;
                     index[dim] = row % blockOf(dim);
                     return group_[row / blockOf(dim)];
                   });
  }

  Operation* op_;
  RankedTensorType type_;
  int64_t index_;
  SmallVector<const Tensor*> group_;
};

// The result of sending rows, or of returning them, on the device at
// `position`.
FailureOr<Tensor> moveRows(Operation* op, const core::Mesh& mesh,
                           const Everywhere& rows, const Everywhere& to,
                           int64_t position) {
  const auto axes =
      sharding::axesOf(op->getAttrOfType<dist::AxesAttr>("axes"), mesh);
  const int64_t index = core::IndexAlong(mesh, axes, position);
  const std::vector<int64_t> group = core::GroupAlong(mesh, axes, position);
  const auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
  if (auto send = llvm::dyn_cast<dist::SendRowsOp>(op)) {
    // Senders and numbers of destinations of the rows that come here.
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (int64_t member : group)
      for (int64_t p = 0; p < to[member].size(); ++p)
        if (to[member].getInt(p) == index) pairs.push_back({member, p});
    if (static_cast<int64_t>(pairs.size()) > type.getDimSize(0))
      return op->emitOpError()
             << "expected at most " << type.getDimSize(0) << " rows on device "
             << position << ", found " << pairs.size();
    const int64_t choices = to[position].shape()[1];
    return collect(type, send.getFill().convertToDouble(),
                   [&](Index& at) -> const Tensor* {
                     if (at[0] >= static_cast<int64_t>(pairs.size()))
                       return nullptr;
                     const auto [sender, p] = pairs[at[0]];
                     at[0] = p / choices;
                     return &rows[sender];
                   });
  }
  // The place of each of this device's rows at its holder.
  std::vector<int64_t> places;
  std::map<int64_t, int64_t> next;  // by holder
  for (int64_t member : group) {
    for (int64_t p = 0; p < to[member].size(); ++p) {
      const int64_t place = next[to[member].getInt(p)]++;
      if (member == position) places.push_back(place);
    }
    if (member == position) break;
  }
  return collect(type, 0, [&](Index& at) -> const Tensor* {
    const int64_t holder = to[position].getInt(at[0]);
    if (holder < 0 || holder >= static_cast<int64_t>(group.size()))
      return nullptr;
    at[0] = places[at[0]];
    return &rows[group[holder]];
  });
}

bool isCollective(Operation* op) {
  return llvm::isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp,
                   dist::AllSliceOp, dist::AllToAllOp, dist::ExchangeOp,
                   dist::PermuteOp, dist::BroadcastOp>(op);
}

class Interpreter {
 public:
  Interpreter(const core::Mesh& mesh, const Observer& observer)
      : mesh_(mesh), observer_(observer) {}

  FailureOr<SmallVector<Everywhere>> run(FuncOp function,
                                         llvm::ArrayRef<Everywhere> arguments) {
    Values values = valuesOf(function, arguments);
    for (Operation& op : function.front().without_terminator())
      if (failed(step(&op, values))) return failure();
    return returned(function, values);
  }

  using Values = llvm::DenseMap<Value, Everywhere>;

  static Values valuesOf(FuncOp function,
                         llvm::ArrayRef<Everywhere> arguments) {
    Values values;
    for (auto [value, tensor] :
         llvm::zip_equal(function.getArguments(), arguments))
      values[value] = tensor;
    return values;
  }

  static SmallVector<Everywhere> returned(FuncOp function,
                                          const Values& values) {
    SmallVector<Everywhere> returned;
    for (Value value : function.front().getTerminator()->getOperands())
      returned.push_back(values.lookup(value));
    return returned;
  }

  mlir::LogicalResult step(Operation* op, Values& values) {
    SmallVector<Everywhere> operands;
    for (Value operand : op->getOperands())
      operands.push_back(values.lookup(operand));
    auto results = evaluate(op, operands);
    if (failed(results)) return failure();
    if (observer_) observer_(op, *results);
    for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results))
      values[value] = std::move(tensor);
    return mlir::success();
  }

 private:
  FailureOr<SmallVector<Everywhere>> evaluate(
      Operation* op, llvm::ArrayRef<Everywhere> operands) {
    if (auto call = llvm::dyn_cast<CallOp>(op)) {
      auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
          op, call.getCalleeAttr());
      return run(callee, operands);
    }
    if (auto loop = llvm::dyn_cast<nn::LoopOp>(op))
      return iterate(loop, operands);
    SmallVector<Everywhere> results(op->getNumResults());
    for (int64_t position = 0; position < mesh_.Size(); ++position) {
      if (llvm::isa<dist::SendRowsOp, dist::ReturnRowsOp>(op)) {
        auto moved = moveRows(op, mesh_, operands[0], operands[1], position);
        if (failed(moved)) return failure();
        results[0].push_back(std::move(*moved));
      } else if (isCollective(op)) {
        results[0].push_back(
            Collective(op, mesh_, operands[0], position).result());
      } else if (auto coordinate = llvm::dyn_cast<dist::CoordinateOp>(op)) {
        Tensor index(llvm::cast<RankedTensorType>(coordinate.getType()));
        index.setInt(
            0, core::IndexAlong(
                   mesh_, sharding::axesOf(coordinate.getAxesAttr(), mesh_),
                   position));
        results[0].push_back(std::move(index));
      } else if (failed(evaluateOn(op, operands, position, results))) {
        return failure();
      }
    }
    return results;
  }

  // All devices run the same number of iterations.
  FailureOr<SmallVector<Everywhere>> iterate(
      nn::LoopOp loop, llvm::ArrayRef<Everywhere> operands) {
    auto body = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        loop, loop.getBodyAttr());
    SmallVector<Everywhere> values(operands);
    for (int64_t i = 0; values[0][0].getInt(0) != 0; ++i) {
      for (const Tensor& goes_on : values[0])
        if (goes_on.getInt(0) == 0)
          return loop.emitOpError(
              "expected devices to agree on another iteration, found that they "
              "do not");
      if (i >= kMaxIterations)
        return loop.emitOpError()
               << "expected at most " << kMaxIterations
               << " iterations to interpret, found more; take "
                  "inputs that need fewer";
      auto next = run(body, values);
      if (failed(next)) return failure();
      std::move(next->begin(), next->end(), values.begin());
    }
    values.truncate(loop.getNumResults());
    return values;
  }

  mlir::LogicalResult evaluateOn(Operation* op,
                                 llvm::ArrayRef<Everywhere> operands,
                                 int64_t position,
                                 SmallVector<Everywhere>& results) {
    auto reference = llvm::dyn_cast<nn::ReferenceOpInterface>(op);
    if (!reference)
      return op->emitOpError()
             << "expected an operation with a reference implementation or a "
                "collective to interpret";
    SmallVector<Tensor> local;
    for (const Everywhere& operand : operands)
      local.push_back(operand[position]);
    auto values = reference.evaluate(local);
    if (failed(values))
      return op->emitOpError()
             << "has no meaning for the values of its operands on device "
             << position;
    for (auto [result, value] : llvm::zip_equal(results, *values))
      result.push_back(std::move(value));
    return mlir::success();
  }

  const core::Mesh& mesh_;
  const Observer& observer_;
};

// A rank and its next operation.
struct Rank {
  FuncOp function;
  Interpreter::Values values;
  mlir::Block::iterator next;

  bool isDone() { return llvm::isa<mlir::func::ReturnOp>(*next); }
};

// Values in flight from one rank to another.
using Queues = std::map<std::pair<int64_t, int64_t>, std::deque<Everywhere>>;

// Executes the transfer at which `rank` stands; false if it must wait.
bool transfer(Operation* op, int64_t rank, Rank& state, Queues& queues) {
  if (auto send = llvm::dyn_cast<dist::SendOp>(op)) {
    queues[{rank, send.getTo()}].push_back(
        state.values.lookup(send.getInput()));
    return true;
  }
  auto receive = llvm::cast<dist::ReceiveOp>(op);
  std::deque<Everywhere>& queue = queues[{receive.getFrom(), rank}];
  if (queue.empty()) return false;
  state.values[receive.getResult()] = std::move(queue.front());
  queue.pop_front();
  return true;
}

// Converts a local index to a global one; false beyond a dimension's end.
bool toGlobal(const core::Mesh& mesh, llvm::ArrayRef<int64_t> shape,
              const core::Sharding& sharding, int64_t position, Index& index) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    index[dim] +=
        core::OwnedRows(mesh, shape[dim], sharding.dims[dim], position).begin;
    // An empty shard begins at the end, so all its rows are outside.
    if (index[dim] >= shape[dim]) return false;
  }
  return true;
}

}  // namespace

FailureOr<SmallVector<Everywhere>> interpretEverywhere(
    FuncOp function, const core::Mesh& mesh,
    llvm::ArrayRef<Everywhere> arguments, const Observer& observer) {
  return Interpreter(mesh, observer).run(function, arguments);
}

FailureOr<SmallVector<SmallVector<Everywhere>>> interpretRanks(
    llvm::ArrayRef<FuncOp> functions, const core::Mesh& mesh,
    llvm::ArrayRef<SmallVector<Everywhere>> arguments,
    const Observer& observer) {
  Interpreter interpreter(mesh, observer);
  std::vector<Rank> ranks;
  for (auto [i, own] : llvm::enumerate(arguments)) {
    FuncOp function = functions[i];
    ranks.push_back({function, Interpreter::valuesOf(function, own),
                     function.front().begin()});
  }
  Queues queues;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [number, rank] : llvm::enumerate(ranks))
      for (; !rank.isDone(); ++rank.next, moved = true) {
        Operation* op = &*rank.next;
        if (llvm::isa<dist::SendOp, dist::ReceiveOp>(op)) {
          if (!transfer(op, number, rank, queues)) break;
        } else if (failed(interpreter.step(op, rank.values))) {
          return failure();
        }
      }
  }
  SmallVector<SmallVector<Everywhere>> results;
  for (Rank& rank : ranks) {
    if (!rank.isDone())
      return rank.next->emitOpError(
          "expected the received value to be sent; "
          "found every rank waiting");
    results.push_back(Interpreter::returned(rank.function, rank.values));
  }
  return results;
}

Everywhere scatterTensor(const Tensor& whole, const core::Mesh& mesh,
                         const core::Sharding& sharding) {
  Everywhere parts;
  auto type =
      whole.type().clone(core::LocalShape(whole.shape().vec(), sharding));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t position = 0; position < mesh.Size(); ++position)
    parts.push_back(collect(type, nan, [&](Index& index) -> const Tensor* {
      return toGlobal(mesh, whole.shape(), sharding, position, index) ? &whole
                                                                      : nullptr;
    }));
  return parts;
}

Tensor assembleTensor(const Everywhere& parts, const core::Mesh& mesh,
                      RankedTensorType global, const core::Sharding& sharding,
                      core::Reduction reduction) {
  Tensor whole(global);
  std::vector<bool> seen(whole.size(), false);
  std::set<std::vector<int64_t>> parts_seen;
  for (int64_t position = 0; position < mesh.Size(); ++position) {
    std::vector<int64_t> which = {
        core::IndexAlong(mesh, sharding.unreduced, position)};
    for (const core::DimSharding& dim : sharding.dims)
      which.push_back(core::IndexAlong(mesh, dim.axes, position));
    if (!parts_seen.insert(which).second)
      continue;  // a copy of a part already seen
    const Tensor& part = parts[position];
    for (int64_t i = 0; i < part.size(); ++i) {
      Index index = part.index(i);
      if (!toGlobal(mesh, global.getShape(), sharding, position, index))
        continue;
      const int64_t target = whole.position(index);
      if (!seen[target])
        whole.copyFrom(target, part, i);
      else if (whole.isFloat())
        whole.setFloat(target, combine(reduction, whole.getFloat(target),
                                       part.getFloat(i)));
      else
        whole.setInt(target,
                     static_cast<int64_t>(combine(
                         reduction, whole.getInt(target), part.getInt(i))));
      seen[target] = true;
    }
  }
  return whole;
}

}  // namespace partita::partition
