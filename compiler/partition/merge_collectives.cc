// Merges collectives into buckets; see passes.td.
#include "compiler/partition/passes.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::partition {

#define GEN_PASS_DEF_MERGECOLLECTIVESPASS
#include "compiler/partition/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

// Properties that collectives must share to be merged.
struct Kind {
  mlir::OperationName name;
  mlir::Attribute axes, reduction;
  mlir::Type element;

  bool operator==(const Kind& other) const {
    return std::tie(name, axes, reduction, element) ==
           std::tie(other.name, other.axes, other.reduction, other.element);
  }
};

struct Bucket {
  Kind kind;
  SmallVector<Operation*> members;
  // Operations that read members and whose own results are not read yet; they
  // move behind the merged collective.
  SmallVector<Operation*> readers;
  int64_t bytes = 0;
};

// Arranges the members' tensors in one tensor [devices or 1, ...]: the
// dimension that is scattered or gathered comes first.
class Merger {
 public:
  Merger(mlir::OpBuilder& builder, mlir::Location loc)
      : builder_(builder), loc_(loc) {}

  Value reshape(Value value, llvm::ArrayRef<int64_t> shape) {
    return nn::ReshapeOp::create(builder_, loc_, typeOf(value).clone(shape),
                                 value);
  }

  // Converts [A, rows, R] to [n, A * c * R]; pads rows with zeros to n * c.
  Value blocksFirst(Value value, int64_t dim, int64_t n, int64_t c) {
    value = padTo(value, dim, n * c);
    const auto [before, after] = around(typeOf(value), dim);
    value = reshape(value, {before, n, c, after});
    value = nn::TransposeOp::create(builder_, loc_, value,
                                    llvm::ArrayRef<int64_t>{1, 0, 2, 3});
    return reshape(value, {n, before * c * after});
  }

  // Inverse of blocksFirst, to a tensor of the given type.
  Value blocksInPlace(Value value, RankedTensorType type, int64_t dim,
                      int64_t n, int64_t c) {
    const auto [before, after] = around(type, dim);
    value = reshape(value, {n, before, c, after});
    value = nn::TransposeOp::create(builder_, loc_, value,
                                    llvm::ArrayRef<int64_t>{1, 0, 2, 3});
    SmallVector<int64_t> whole(type.getShape());
    whole[dim] = n * c;
    value = reshape(value, whole);
    if (n * c == type.getDimSize(dim)) return value;
    return nn::SliceOp::create(builder_, loc_, type, value,
                               SmallVector<int64_t>(type.getRank(), 0),
                               SmallVector<int64_t>(type.getRank(), 1));
  }

  // Returns columns [begin, begin + count).
  Value columns(Value value, int64_t begin, int64_t count) {
    RankedTensorType type = typeOf(value);
    return nn::SliceOp::create(
        builder_, loc_, type.clone({type.getDimSize(0), count}), value,
        llvm::ArrayRef<int64_t>{0, begin}, llvm::ArrayRef<int64_t>{1, 1});
  }

  Value concat(llvm::ArrayRef<Value> parts) {
    int64_t columns = 0;
    for (Value part : parts) columns += typeOf(part).getDimSize(1);
    RankedTensorType first = typeOf(parts[0]);
    return nn::ConcatOp::create(
        builder_, loc_, first.clone({first.getDimSize(0), columns}), parts, 1);
  }

 private:
  static std::pair<int64_t, int64_t> around(RankedTensorType type,
                                            int64_t dim) {
    int64_t before = 1, after = 1;
    for (int64_t i = 0; i < type.getRank(); ++i)
      (i < dim ? before : after) *= i == dim ? 1 : type.getDimSize(i);
    return {before, after};
  }

  Value padTo(Value value, int64_t dim, int64_t size) {
    RankedTensorType type = typeOf(value);
    if (type.getDimSize(dim) == size) return value;
    SmallVector<int64_t> shape(type.getShape()), low(type.getRank(), 0),
        high(type.getRank(), 0);
    high[dim] = size - shape[dim];
    shape[dim] = size;
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value zero = mlir::arith::ConstantOp::create(
        builder_, loc_,
        llvm::cast<mlir::TypedAttr>(builder_.getZeroAttr(scalar)));
    return nn::PadOp::create(builder_, loc_, type.clone(shape), value, zero,
                             low, high);
  }

  mlir::OpBuilder& builder_;
  mlir::Location loc_;
};

// A member's blocks along a dimension: `count` blocks of `rows` rows.
struct Blocks {
  int64_t dim = 0, count = 1, rows = 0;
};

class MergeCollectives
    : public impl::MergeCollectivesPassBase<MergeCollectives> {
 public:
  using MergeCollectivesPassBase::MergeCollectivesPassBase;

  void runOnOperation() override {
    auto meshes = getOperation().getOps<dist::MeshOp>();
    if (meshes.empty()) return;
    mesh_ = *meshes.begin();
    for (mlir::func::FuncOp function :
         getOperation().getOps<mlir::func::FuncOp>())
      for (mlir::Block& block : function.getBody()) run(block);
  }

 private:
  void run(mlir::Block& block) {
    SmallVector<Bucket> open;
    for (Operation& op : llvm::make_early_inc_range(block)) {
      // An operation that reads a result either waits or closes the bucket.
      for (Bucket& bucket : open) {
        const int64_t reads = countReads(op, bucket.members);
        if (countReads(op, bucket.readers) > 0 || reads > 1 ||
            (reads == 1 && !canWait(op)))
          close(bucket);
        else if (reads == 1)
          bucket.readers.push_back(&op);
      }
      llvm::erase_if(
          open, [](const Bucket& bucket) { return bucket.members.empty(); });
      std::optional<Kind> kind = kindOf(op);
      if (!kind) continue;
      auto found = llvm::find_if(
          open, [&](const Bucket& bucket) { return bucket.kind == *kind; });
      if (found == open.end()) {
        open.push_back({*kind, {}, {}, 0});
        found = std::prev(open.end());
      }
      found->members.push_back(&op);
      found->bytes += sentBytes(op);
      if (found->bytes >= bucket_bytes) {
        close(*found);
        open.erase(found);
      }
    }
  }

  static int64_t countReads(Operation& op, llvm::ArrayRef<Operation*> others) {
    return llvm::count_if(others, [&](Operation* other) {
      return llvm::is_contained(op.getOperands(), other->getResult(0));
    });
  }

  // Additions may wait: sums over microbatches read one gradient of the current
  // one, and no other operation needs them yet.
  static bool canWait(Operation& op) {
    return llvm::isa<mlir::arith::AddFOp>(op);
  }

  // Returns the bytes of the larger side of a collective.
  static int64_t sentBytes(Operation& op) {
    return std::max(bytesOf(typeOf(op.getOperand(0))),
                    bytesOf(typeOf(op.getResult(0))));
  }

  // Returns nullopt for operations that are not merged: other operations,
  // scalars, and tensors that fill a bucket alone.
  std::optional<Kind> kindOf(Operation& op) {
    if (!llvm::isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp>(
            op) ||
        typeOf(op.getResult(0)).getRank() == 0 || sentBytes(op) >= bucket_bytes)
      return std::nullopt;
    return Kind{op.getName(), op.getAttr("axes"), op.getAttr("reduction"),
                typeOf(op.getResult(0)).getElementType()};
  }

  Blocks blocksOf(Operation* member) {
    if (auto scatter = llvm::dyn_cast<dist::ReduceScatterOp>(member))
      return {static_cast<int64_t>(scatter.getDim()),
              mesh_.sizeOf(scatter.getAxes().getAxes()),
              typeOf(scatter.getResult()).getDimSize(scatter.getDim())};
    if (auto gather = llvm::dyn_cast<dist::AllGatherOp>(member))
      return {static_cast<int64_t>(gather.getDim()),
              mesh_.sizeOf(gather.getAxes().getAxes()),
              typeOf(gather.getInput()).getDimSize(gather.getDim())};
    return {};
  }

  // Concatenates the operands, emits one collective, and slices its result.
  void close(Bucket& bucket) {
    SmallVector<Operation*> members, readers;
    members.swap(bucket.members);
    readers.swap(bucket.readers);
    if (members.size() < 2) return;
    Operation *last = members.back(), *next = last->getNextNode();
    mlir::OpBuilder builder(last);
    Merger merger(builder, last->getLoc());
    SmallVector<Value> parts;
    for (Operation* member : members) {
      Value input = member->getOperand(0);
      const Blocks blocks = blocksOf(member);
      parts.push_back(
          llvm::isa<dist::ReduceScatterOp>(member)
              ? merger.blocksFirst(input, blocks.dim, blocks.count, blocks.rows)
              : merger.reshape(input, {1, typeOf(input).getNumElements()}));
    }
    Value sent = merger.concat(parts);
    Operation* merged = builder.clone(*last);
    merged->setOperand(0, sent);
    SmallVector<int64_t> shape(typeOf(sent).getShape());
    if (llvm::isa<dist::ReduceScatterOp>(last)) shape[0] = 1;
    if (llvm::isa<dist::AllGatherOp>(last)) shape[0] = blocksOf(last).count;
    if (!llvm::isa<dist::AllReduceOp>(last))
      merged->setAttr("dim", builder.getI64IntegerAttr(0));
    merged->getResult(0).setType(typeOf(sent).clone(shape));
    cutUp(merger, members, merged->getResult(0));
    for (Operation* reader : readers)
      if (reader->isBeforeInBlock(merged)) reader->moveBefore(next);
  }

  void cutUp(Merger& merger, llvm::ArrayRef<Operation*> members,
             Value received) {
    int64_t begin = 0;
    for (Operation* member : members) {
      const RankedTensorType type = typeOf(member->getResult(0));
      const Blocks blocks = blocksOf(member);
      const bool gathers = llvm::isa<dist::AllGatherOp>(member);
      const int64_t count = gathers
                                ? typeOf(member->getOperand(0)).getNumElements()
                                : type.getNumElements();
      Value own = merger.columns(received, begin, count);
      begin += count;
      own = gathers ? merger.blocksInPlace(own, type, blocks.dim, blocks.count,
                                           blocks.rows)
                    : merger.reshape(own, type.getShape());
      member->getResult(0).replaceAllUsesWith(own);
      member->erase();
    }
  }

  dist::MeshOp mesh_;
};

}  // namespace
}  // namespace partita::partition
