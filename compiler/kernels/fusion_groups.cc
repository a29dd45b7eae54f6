// Groups producers greedily into consumers; the header describes the idea.
#include "compiler/kernels/fusion_groups.h"

#include "compiler/kernels/fusion_edge.h"
#include "compiler/kernels/fusion_products.h"
#include "compiler/kernels/placed_gradients.h"
#include "compiler/kernels/reduction_marks.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::kernels {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

// Larger kernels compile slowly and spill registers.
constexpr size_t kMostOperations = 96;
// Sums of rows in one kernel, which keeps them in shared memory.
constexpr size_t kMostRowSums = 2;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

int64_t bytesOf(Value value) {
  return typeOf(value).getNumElements() *
         llvm::divideCeil(typeOf(value).getElementTypeBitWidth(), 8);
}

bool isTrailing(ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim !=
        rank - static_cast<int64_t>(dims.size()) + static_cast<int64_t>(i))
      return false;
  return true;
}

class Grouper {
 public:
  explicit Grouper(mlir::Block& block) : block_(block) {}

  FusionGroups run() {
    int64_t calls = 0, transfers = 0;
    for (Operation& op : block_) {
      result_.roles[&op] = fusionRoleOf(op);
      calls += llvm::isa<mlir::func::CallOp, nn::LoopOp>(op);
      calls_before_[&op] = calls;
      transfers += llvm::isa<exec::SendOp, exec::ReceiveOp>(op);
      transfers_before_[&op] = transfers;
    }
    materialiseMovement();
    for (Operation& op : llvm::reverse(block_))
      if (isHeavy(&op)) place(&op);
    return collect();
  }

 private:
  FusionRole role(Operation* op) const { return result_.roles.lookup(op); }
  bool isHeavy(Operation* op) const {
    FusionRole r = role(op);
    return r != FusionRole::fixed && r != FusionRole::movement &&
           r != FusionRole::view;
  }

  // Movement that an operation outside kernels reads becomes a view (reshape)
  // or an elementwise kernel.
  void materialiseMovement() {
    for (Operation& op : llvm::reverse(block_)) {
      if (role(&op) != FusionRole::movement) continue;
      bool needed = llvm::any_of(op.getUsers(), [&](Operation* user) {
        return role(user) == FusionRole::fixed ||
               role(user) == FusionRole::view;
      });
      if (needed)
        result_.roles[&op] = llvm::isa<nn::ReshapeOp>(op)
                                 ? FusionRole::view
                                 : FusionRole::elementwise;
    }
  }

  void edgesOf(Value value, Edge path, llvm::SmallVectorImpl<Edge>& edges,
               bool& fixed_use) {
    for (mlir::OpOperand& use : value.getUses()) {
      Operation* user = use.getOwner();
      if (role(user) == FusionRole::movement) {
        Edge longer = path;
        longer.pass(user);
        edgesOf(user->getResult(0), longer, edges, fixed_use);
      } else if (isHeavy(user)) {
        Edge edge = path;
        // Blocks of rows are the rows in their order.
        if (hosted_.contains(user)) edge.reshaped = false;
        edge.consumer = user;
        edge.operand = use.get();
        edges.push_back(edge);
      } else {
        fixed_use = true;
      }
    }
  }

  // True if the kernel of `edge.consumer` may compute `producer`.
  bool mayInline(Operation* producer, const Edge& edge) const {
    FusionRole from = role(producer), to = role(edge.consumer);
    // Attention can write its heads side by side instead of one after the
    // other.
    if (from == FusionRole::attention) {
      auto transpose = llvm::dyn_cast<nn::TransposeOp>(edge.consumer);
      return transpose &&
             transpose.getPerm() == ArrayRef<int64_t>{0, 2, 1, 3} &&
             producer->getResult(0).hasOneUse();
    }
    if (from == FusionRole::single || to == FusionRole::product) return false;
    if (from == FusionRole::product)
      return to == FusionRole::elementwise && !edge.moved && !edge.reshaped &&
             !edge.repeats;
    if (to == FusionRole::single && !llvm::isa<nn::ConcatOp>(edge.consumer))
      return false;
    if (edge.repeats && !edge.repeats_rows) return false;
    if (to == FusionRole::attention || to == FusionRole::single)
      return from == FusionRole::elementwise && !edge.repeats;
    if (llvm::isa<nn::GatherOp>(edge.consumer)) return false;
    if (to == FusionRole::reduction &&
        !isTrailing(llvm::cast<nn::ReduceOp>(edge.consumer).getDims(),
                    typeOf(edge.operand).getRank()) &&
        from != FusionRole::elementwise)
      return false;
    if (from == FusionRole::elementwise) return true;
    // Reductions and row operations: the consumer must walk the same rows in
    // the same order.
    if (edge.moved || edge.reshaped) return false;
    if (from == FusionRole::row)
      return !edge.repeats && to != FusionRole::reduction;
    auto reduce = llvm::cast<nn::ReduceOp>(producer);
    if (!edge.repeats) return to == FusionRole::elementwise;
    return isTrailing(reduce.getDims(), typeOf(reduce.getInput()).getRank()) &&
           to == FusionRole::elementwise;
  }

  // True if producer and consumer walk the same elements, so that one loop can
  // write both.
  bool sameDomain(Operation* producer, const Edge& edge) const {
    return !edge.moved && !edge.reshaped && !edge.repeats &&
           edge.consumer->getNumResults() == 1 &&
           (hosted_.contains(edge.consumer) ||
            typeOf(producer->getResult(0)).getShape() ==
                typeOf(edge.consumer->getResult(0)).getShape());
  }

  bool isReadIn(Value value, size_t group) {
    SmallVector<Edge> edges;
    bool fixed_use = false;
    if (value) edgesOf(value, Edge{}, edges, fixed_use);
    return llvm::is_contained(candidates(edges), group);
  }

  void place(Operation* op) {
    SmallVector<Edge> edges;
    bool fixed_use = false;
    for (Value result : op->getResults())
      if (result != lseOf(op)) edgesOf(result, Edge{}, edges, fixed_use);
    if (!fixed_use && writesParts(op, edges)) {
      const size_t group = group_.lookup(edges.front().consumer);
      members_[group].push_back(op);
      group_[op] = group;
      return;
    }
    hostColumns(op, edges);
    mergeReaders(op, edges);
    for (size_t candidate : candidates(edges))
      if (mayJoin(op, candidate, edges, fixed_use)) {
        members_[candidate].push_back(op);
        group_[op] = candidate;
        break;
      }
    releaseColumns(edges);
    if (group_.contains(op)) return;
    if (const std::optional<size_t> rows = rowsOf(op)) {
      members_[*rows].push_back(op);
      group_[op] = *rows;
      hosted_.insert(op);
      return;
    }
    group_[op] = members_.size();
    members_.push_back({op});
  }

  // True if the results of a gradient of attention are all that a kernel joins,
  // so that the gradient can write them into the joint tensor.
  bool writesParts(Operation* op, ArrayRef<Edge> edges) const {
    if (!llvm::isa<nn::AttentionGradOp>(op) || edges.empty()) return false;
    auto concat = llvm::dyn_cast<nn::ConcatOp>(edges.front().consumer);
    if (!concat || members_[group_.lookup(concat)].size() != 1 ||
        calls_before_.lookup(op) != calls_before_.lookup(concat) ||
        transfers_before_.lookup(op) != transfers_before_.lookup(concat))
      return false;
    return placedGradients(concat).size() == edges.size() &&
           llvm::all_of(edges, [&](const Edge& edge) {
             return edge.consumer == concat;
           });
  }

  // Lets kernels of the elements of `op` sum their columns, where that is
  // wanted.
  void hostColumns(Operation* op, llvm::MutableArrayRef<Edge> edges) {
    if (!mlir::OpTrait::hasElementwiseMappableTraits(op)) return;
    for (Edge& edge : edges) {
      if (!edge.consumer->hasAttr(kColumnSumsAttr) || edge.moved ||
          edge.repeats)
        continue;
      hosted_.insert(edge.consumer);
      edge.reshaped = false;
    }
  }
  // Sums that have not become part of such a kernel are kernels of their own.
  void releaseColumns(ArrayRef<Edge> edges) {
    for (const Edge& edge : edges)
      if (edge.consumer->hasAttr(kColumnSumsAttr) &&
          members_[group_.lookup(edge.consumer)].size() == 1)
        hosted_.erase(edge.consumer);
  }
  bool sumsColumns(size_t group) const {
    return llvm::any_of(members_[group], [&](Operation* member) {
      return member->hasAttr(kColumnSumsAttr) && hosted_.contains(member);
    });
  }

  // Makes one kernel of independent elementwise kernels that read `op` at the
  // same indices. Otherwise one of them would have to store it for the others.
  void mergeReaders(Operation* op, ArrayRef<Edge> edges) {
    if (!mlir::OpTrait::hasElementwiseMappableTraits(op)) return;
    SmallVector<size_t> groups = candidates(edges);
    if (groups.empty() || !isFlat(op, groups[0])) return;
    for (const Edge& edge : edges)
      if (!sameDomain(op, edge)) return;
    for (size_t other : llvm::drop_begin(groups))
      if (isFlat(op, other) && areIndependent(groups[0], other))
        merge(groups[0], other);
  }

  // True if all operations of a group are elementwise, on the shape of `op`, or
  // sums of the columns of its elements.
  bool isFlat(Operation* op, size_t group) const {
    return llvm::all_of(members_[group], [&](Operation* member) {
      return hosted_.contains(member) ||
             (mlir::OpTrait::hasElementwiseMappableTraits(member) &&
              typeOf(member->getResult(0)).getShape() ==
                  typeOf(op->getResult(0)).getShape());
    });
  }

  bool areIndependent(size_t a, size_t b) {
    Operation* first = members_[a].front();
    Operation* second = members_[b].front();
    return members_[a].size() + members_[b].size() < kMostOperations &&
           calls_before_.lookup(first) == calls_before_.lookup(second) &&
           transfers_before_.lookup(first) ==
               transfers_before_.lookup(second) &&
           !reaches(a, b) && !reaches(b, a);
  }

  void merge(size_t into, size_t from) {
    for (Operation* member : members_[from]) group_[member] = into;
    llvm::append_range(members_[into], members_[from]);
    members_[from].clear();
    llvm::sort(members_[into], [](Operation* a, Operation* b) {
      return b->isBeforeInBlock(a);
    });
  }

  // True if the group `to` depends on the group `from`.
  bool reaches(size_t from, size_t to) {
    llvm::DenseSet<Operation*> seen;
    SmallVector<Operation*> open;
    for (Operation* member : members_[from])
      llvm::append_range(open, member->getUsers());
    while (!open.empty()) {
      Operation* next = open.pop_back_val();
      if (!seen.insert(next).second) continue;
      llvm::append_range(open, next->getUsers());
      if (!isHeavy(next)) continue;
      const size_t other = group_.lookup(next);
      if (other == to) return true;
      if (other == from) continue;  // its users are open already
      for (Operation* member : members_[other])
        llvm::append_range(open, member->getUsers());
    }
    return false;
  }

  // The kernel that walks the rows which `op` sums in blocks, if there is one
  // that can do both.
  std::optional<size_t> rowsOf(Operation* op) {
    auto sum = llvm::dyn_cast<nn::ReduceOp>(op);
    if (!sum || !op->hasAttr(kRowSumsAttr)) return std::nullopt;
    auto blocks = sum.getInput().getDefiningOp<nn::ReshapeOp>();
    if (!blocks) return std::nullopt;
    const ArrayRef<int64_t> rows = typeOf(blocks.getInput()).getShape();
    llvm::DenseSet<Value> sources;
    addSources(blocks.getInput(), sources);
    // The nearest kernel: others may share only what both are computed from.
    for (size_t group = members_.size(); group-- > 0;) {
      if (members_[group].empty()) continue;
      // Its last operation writes the elements of the rows.
      Operation* last = members_[group].front();
      if (role(last) == FusionRole::elementwise &&
          typeOf(last->getResult(0)).getShape() == rows &&
          walksRows(group, rows, typeOf(sum.getInput()).getShape()) &&
          readsAnyOf(group, sources) &&
          members_[group].size() < kMostOperations &&
          !delaysMemory(op, group) && !reachesAround(op, group))
        return group;
    }
    return std::nullopt;
  }

  // Adds the values that `value` is computed from by elementwise operations.
  void addSources(Value value, llvm::DenseSet<Value>& sources) const {
    value = beforeWidening(value);
    Operation* op = value.getDefiningOp();
    if (op && (role(op) == FusionRole::movement ||
               op->hasTrait<mlir::OpTrait::ConstantLike>()))
      return;
    if (!sources.insert(value).second || !op ||
        role(op) != FusionRole::elementwise)
      return;
    for (Value operand : op->getOperands()) addSources(operand, sources);
  }

  bool readsAnyOf(size_t group, const llvm::DenseSet<Value>& sources) const {
    return llvm::any_of(members_[group], [&](Operation* member) {
      return llvm::any_of(member->getOperands(), [&](Value operand) {
        return sources.contains(beforeWidening(operand));
      });
    });
  }

  // True if a kernel reduces along these rows, and other sums of rows in it
  // have the same blocks.
  bool walksRows(size_t group, ArrayRef<int64_t> rows,
                 ArrayRef<int64_t> blocks) const {
    bool any = false;
    size_t sums = 1;
    for (Operation* member : members_[group]) {
      if (hosted_.contains(member)) {
        if (++sums > kMostRowSums) return false;
        if (typeOf(member->getOperand(0)).getShape() != blocks) return false;
        continue;
      }
      if (role(member) == FusionRole::elementwise) continue;
      if (rowShape(member) != rows) return false;
      any = true;
    }
    return any;
  }

  SmallVector<size_t> candidates(ArrayRef<Edge> edges) const {
    SmallVector<size_t> groups;
    for (const Edge& edge : edges)
      if (size_t group = group_.lookup(edge.consumer);
          !llvm::is_contained(groups, group))
        groups.push_back(group);
    return groups;
  }

  bool mayJoin(Operation* op, size_t group, ArrayRef<Edge> edges,
               bool fixed_use) {
    if ((op->getNumResults() != 1 && !lseOf(op)) ||
        isReadIn(lseOf(op), group) || members_[group].size() >= kMostOperations)
      return false;
    // Its warps walk down columns, not along rows.
    if (sumsColumns(group) && role(op) != FusionRole::elementwise) return false;
    bool escapes = fixed_use, same_domain = true;
    int paths = 0, elsewhere = 0;
    for (const Edge& edge : edges) {
      if (group_.lookup(edge.consumer) != group) {
        escapes = true;
        continue;
      }
      if (!mayInline(op, edge)) return false;
      same_domain &= sameDomain(op, edge);
      ++paths;
      elsewhere +=
          edge.moved || edge.reshaped || llvm::isa<nn::PadOp>(edge.consumer);
    }
    // A producer that is read at several indices would be computed several
    // times, and a chain of such producers exponentially often.
    if (paths > 1 && elsewhere > 0) return false;
    if (escapes) {
      // Its other readers would wait for the kernel's last operation, and for
      // the operands of that operation.
      if (!same_domain || !writesRows(group) ||
          transfers_before_.lookup(op) !=
              transfers_before_.lookup(members_[group].front()))
        return false;
    }
    if (delaysMemory(op, group) || !rowsAgree(op, group) ||
        !productsAgree(op, members_[group], escapes))
      return false;
    return !reachesAround(op, group);
  }

  // False if the kernel has a role that writes a single result.
  bool writesRows(size_t group) const {
    return llvm::all_of(members_[group], [&](Operation* member) {
      return hosted_.contains(member) ||
             (role(member) != FusionRole::attention &&
              role(member) != FusionRole::single &&
              role(member) != FusionRole::reduction);
    });
  }

  // True if joining would keep more memory than it saves while other functions
  // run, because the kernel runs at its last operation. Example: the gradients
  // of all microbatches would be kept until they are summed.
  bool delaysMemory(Operation* op, size_t group) const {
    const int64_t last = calls_before_.lookup(members_[group].front());
    if (calls_before_.lookup(op) == last) return false;
    int64_t kept = 0;
    for (Value operand :
         llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end()))
      if (operand.getDefiningOp()) kept += bytesOf(operand);
    return kept > bytesOf(op->getResult(0));
  }

  // True if all row operations and reductions of the kernel walk rows of one
  // length.
  bool rowsAgree(Operation* op, size_t group) const {
    ArrayRef<int64_t> rows = rowShape(op);
    if (rows.empty()) return true;
    return llvm::all_of(members_[group], [&](Operation* member) {
      ArrayRef<int64_t> other = rowShape(member);
      return other.empty() || other == rows;
    });
  }
  ArrayRef<int64_t> rowShape(Operation* op) const {
    if (hosted_.contains(op)) return {};
    if (role(op) == FusionRole::row || role(op) == FusionRole::reduction)
      return typeOf(op->getOperand(0)).getShape();
    return {};
  }

  // True if a path from `op` leaves `group` and comes back: joining would make
  // kernels wait for each other.
  bool reachesAround(Operation* op, size_t group) {
    llvm::DenseSet<std::pair<Operation*, unsigned>> seen;
    // (operation, true if the path has left kernel and movement)
    SmallVector<std::pair<Operation*, unsigned>> stack;
    auto push_users = [&](Operation* from, bool left) {
      for (Operation* user : from->getUsers())
        if (seen.insert({user, left}).second) stack.push_back({user, left});
    };
    push_users(op, false);
    while (!stack.empty()) {
      auto [next, left] = stack.pop_back_val();
      if (!isHeavy(next)) {
        push_users(next, left || role(next) != FusionRole::movement);
      } else if (size_t other = group_.lookup(next); other != group) {
        for (Operation* member : members_[other]) push_users(member, true);
      } else if (left) {
        return true;
      }
    }
    return false;
  }

  FusionGroups collect() {
    for (auto& members : llvm::reverse(members_)) {
      if (members.empty()) continue;  // merged into another group
      SmallVector<Operation*> ordered(members.rbegin(), members.rend());
      result_.groups.emplace_back(std::move(ordered));
    }
    return std::move(result_);
  }

  mlir::Block& block_;
  FusionGroups result_;
  std::vector<SmallVector<Operation*>> members_;  // the last operation first
  llvm::DenseMap<Operation*, size_t> group_;
  // Sums of rows, in kernels that compute these rows for other reasons.
  llvm::DenseSet<Operation*> hosted_;
  llvm::DenseMap<Operation*, int64_t> calls_before_, transfers_before_;
};

}  // namespace

FusionGroups findFusionGroups(mlir::Block& block) {
  return Grouper(block).run();
}

}  // namespace partita::kernels
