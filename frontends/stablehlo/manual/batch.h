// Builds a manual computation's body as operations on whole tensors.
//
// The body is one device's program. A value of it that differs between devices
// becomes one tensor with a leading dimension per manual axis along which it
// may differ: [d, t, l...] for a local value [l...]. Its leading dimensions are
// divided by those axes, so each device computes its own entry. Collectives are
// then ordinary operations on leading dimensions: an all-reduce is a sum over
// one, and partitioning makes it an all-reduce again. A value that is equal on
// all devices, e.g. the result of an all-reduce, has no leading dimension.
#ifndef PARTITA_FRONTENDS_STABLEHLO_MANUAL_BATCH_H_
#define PARTITA_FRONTENDS_STABLEHLO_MANUAL_BATCH_H_

#include "frontends/stablehlo/manual/axes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Operation.h"

namespace partita::stablehlo {

using builder::Dims;
using builder::Emitter;
using builder::Shape;
using builder::Val;

// A value of a body. Dimension i of `val` belongs to manual axis `axes[i]`; the
// other dimensions are those of the local value. Axes are in increasing order.
struct Batched {
  Val val;
  Shape axes = {};

  int64_t lead() const { return static_cast<int64_t>(axes.size()); }
  Dims localShape() const { return val.shape().drop_front(axes.size()); }
};

// The union of axes in increasing order, and the axes of `a` not in `b`.
Shape joinAxes(Dims a, Dims b);
Shape withoutAxes(Dims a, Dims b);

class Batcher {
 public:
  // With `divides`, values of the result have the shardings that the body
  // implies; otherwise they have none.
  Batcher(Emitter& e, const ManualAxes& axes, bool divides)
      : e(e), axes(axes), divides_(divides) {}

  Emitter& e;
  const ManualAxes& axes;

  void set(mlir::Value local, Batched whole) { values_[local] = whole; }
  // The value of an operand of the body.
  Batched get(mlir::Value local) const;

  // Builds one operation of the body. False after an error.
  bool build(mlir::Operation& op);

  // The value with more axes: all devices along them have the same entry.
  // Without `folds`, copies of a constant are not folded.
  Batched spread(const Batched& x, Dims axes, bool folds = false) const;
  // Spreads values to all axes that one of them has.
  Shape align(llvm::MutableArrayRef<Batched> values) const;
  // Constrains a value to its own axes. `local` adds axes to local dimensions.
  Batched place(Batched x, llvm::ArrayRef<dist::DimAttr> local = {},
                llvm::ArrayRef<dist::AxisAttr> replicated = {}) const;
  // The sizes of leading dimensions, then `local`.
  Shape withLead(Dims axes, Dims local) const;
  // A constant without axes along which it does not change.
  Batched shrink(Batched x) const;

 private:
  // Families of operations. Each returns false, without an error, for an
  // operation of another family.
  bool buildMovement(mlir::Operation& op);
  bool buildContraction(mlir::Operation& op);
  bool buildReduction(mlir::Operation& op);
  bool buildIndexing(mlir::Operation& op);
  bool buildCollective(mlir::Operation& op);
  // Operations whose attributes name no dimension from the front.
  bool buildElementwise(mlir::Operation& op);

  Batched allReduce(const Batched& x, nn::ReduceKind kind, Dims over) const;
  Batched allGather(const Batched& x, const Collective& c) const;
  Batched reduceScatter(const Batched& x, const Collective& c) const;
  Batched allToAll(const Batched& x, const Collective& c) const;
  Batched permute(const Batched& x, const Collective& c) const;
  Batched partitionId() const;

  void setResult(mlir::Operation& op, Batched whole, unsigned i = 0) {
    values_[op.getResult(i)] = shrink(whole);
  }

  bool divides_;
  llvm::DenseMap<mlir::Value, Batched> values_;
};

// The name of the attribute with a collective's number, on the operation that
// stands for it in a body.
inline constexpr char kCollectiveAttr[] = "collective";

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_MANUAL_BATCH_H_
