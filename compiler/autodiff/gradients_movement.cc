// Gradients of operations that move elements: the inverse move, which sums the
// gradients of elements with one source.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using nn::MathBuilder;
using nn::ReduceKind;
using nn::ScatterKind;
namespace arith = mlir::arith;

using Sizes = SmallVector<int64_t>;

// Builds data movement at the gradient's builder.
class Mover {
 public:
  explicit Mover(Gradient& gradient)
      : math(gradient.math), gradient_(gradient) {}

  Value slice(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
              ArrayRef<int64_t> strides) {
    const bool moves = type(x).getShape() != shape ||
                       llvm::any_of(strides, [](int64_t s) { return s != 1; });
    if (!moves) return x;
    return nn::SliceOp::create(gradient_.builder(), gradient_.loc(),
                               type(x).clone(shape), x, starts, strides);
  }

  // Surrounds x with zeros.
  Value pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
    return pad(x, 0, low, high);
  }
  Value pad(Value x, double value, ArrayRef<int64_t> low,
            ArrayRef<int64_t> high) {
    Sizes shape(type(x).getShape());
    for (auto [size, l, h] : llvm::zip_equal(shape, low, high)) size += l + h;
    if (type(x).getShape() == ArrayRef(shape)) return x;
    const Value filling =
        math.constant(type(x).clone(ArrayRef<int64_t>()), value);
    return nn::PadOp::create(gradient_.builder(), gradient_.loc(),
                             type(x).clone(shape), x, filling, low, high);
  }

  Value transpose(Value x, ArrayRef<int64_t> perm) {
    return nn::TransposeOp::create(gradient_.builder(), gradient_.loc(), x,
                                   perm);
  }

  // Gathers from `input`, with the axes and batch dimensions of nn.gather.
  Value gather(Value input, Value indices, ArrayRef<int64_t> axes,
               int64_t batch_dims) {
    const RankedTensorType result =
        nn::inferGatherType(type(input), type(indices), axes, batch_dims);
    return nn::GatherOp::create(gradient_.builder(), gradient_.loc(), result,
                                input, indices, axes, batch_dims);
  }
  Value scatter(Value input, Value indices, Value updates,
                ArrayRef<int64_t> axes, int64_t batch_dims, ScatterKind kind) {
    return nn::ScatterOp::create(gradient_.builder(), gradient_.loc(),
                                 input.getType(), input, indices, updates, axes,
                                 batch_dims, kind);
  }

  static RankedTensorType type(Value x) { return MathBuilder::typeOf(x); }

  MathBuilder& math;

 private:
  Gradient& gradient_;
};

Sizes filled(int64_t rank, int64_t value) { return Sizes(rank, value); }

//===----------------------------------------------------------------------===//
// Moves of whole dimensions
//===----------------------------------------------------------------------===//

struct Broadcast
    : GradientOpInterface::ExternalModel<Broadcast, nn::BroadcastOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto broadcast = mlir::cast<nn::BroadcastOp>(op);
    const RankedTensorType input = broadcast.getInput().getType(),
                           result = broadcast.getType();
    // Dimensions along which elements were repeated.
    Sizes repeated;
    for (int64_t dim = 0; dim < result.getRank(); ++dim) {
      const auto* at = llvm::find(broadcast.getDims(), dim);
      const bool is_new = at == broadcast.getDims().end();
      if (is_new || input.getDimSize(at - broadcast.getDims().begin()) !=
                        result.getDimSize(dim))
        repeated.push_back(dim);
    }
    Value g = gradient.ofResult();
    if (!repeated.empty())
      g = gradient.math.reduce(ReduceKind::sum, g, repeated);
    gradient.add(0, gradient.math.reshape(g, input.getShape()));
    return success();
  }
};

struct Reshape : GradientOpInterface::ExternalModel<Reshape, nn::ReshapeOp> {
  LogicalResult buildGradient(mlir::Operation*, Gradient& gradient) const {
    const auto shape = Mover::type(gradient.operand(0)).getShape();
    gradient.add(0, gradient.math.reshape(gradient.ofResult(), shape));
    return success();
  }
};

struct Transpose
    : GradientOpInterface::ExternalModel<Transpose, nn::TransposeOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    const auto perm = mlir::cast<nn::TransposeOp>(op).getPerm();
    Sizes inverse(perm.size());
    for (auto [i, dim] : llvm::enumerate(perm)) inverse[dim] = i;
    gradient.add(0, Mover(gradient).transpose(gradient.ofResult(), inverse));
    return success();
  }
};

struct Concat : GradientOpInterface::ExternalModel<Concat, nn::ConcatOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    const int64_t axis = mlir::cast<nn::ConcatOp>(op).getAxis();
    Mover mover(gradient);
    const int64_t rank = Mover::type(gradient.ofResult()).getRank();
    Sizes starts = filled(rank, 0);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const RankedTensorType input = Mover::type(gradient.operand(i));
      if (gradient.wants(i)) {
        gradient.add(i, mover.slice(gradient.ofResult(), input.getShape(),
                                    starts, filled(rank, 1)));
      }
      starts[axis] += input.getDimSize(axis);
    }
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Slices and padding
//===----------------------------------------------------------------------===//

// Inverts a slice: reverses the gradient if the stride is negative, spreads it
// with zeros between elements (each is the first of `stride` elements), and
// surrounds it with zeros.
struct Slice : GradientOpInterface::ExternalModel<Slice, nn::SliceOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto slice = mlir::cast<nn::SliceOp>(op);
    const RankedTensorType input = slice.getInput().getType(),
                           result = slice.getType();
    Mover mover(gradient);
    if (result.getNumElements() == 0) return success();
    const int64_t rank = input.getRank();
    Sizes starts(slice.getStarts()), strides(slice.getStrides());
    Sizes turn_starts = filled(rank, 0), turn_strides = filled(rank, 1);
    for (int64_t dim = 0; dim < rank; ++dim) {
      const int64_t last = result.getDimSize(dim) - 1;
      if (last == 0) strides[dim] = 1;
      if (strides[dim] > 0) continue;
      turn_starts[dim] = last;
      turn_strides[dim] = -1;
      starts[dim] += last * strides[dim];
      strides[dim] = -strides[dim];
    }
    Value g = mover.slice(gradient.ofResult(), result.getShape(), turn_starts,
                          turn_strides);
    g = spread(mover, g, strides);
    // Zeros after the last element may exceed the end.
    Sizes fitting(Mover::type(g).getShape()), high;
    for (int64_t dim = 0; dim < rank; ++dim) {
      const int64_t room = input.getDimSize(dim) - starts[dim];
      fitting[dim] = std::min(fitting[dim], room);
      high.push_back(room - fitting[dim]);
    }
    g = mover.slice(g, fitting, filled(rank, 0), filled(rank, 1));
    gradient.add(0, mover.pad(g, starts, high));
    return success();
  }

 private:
  static Value spread(Mover& mover, Value x, ArrayRef<int64_t> strides) {
    if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
      return x;
    Sizes split, zeros, spread;
    for (auto [size, stride] :
         llvm::zip_equal(Mover::type(x).getShape(), strides)) {
      split.append({size, 1});
      zeros.append({0, stride - 1});
      spread.push_back(size * stride);
    }
    x = mover.pad(mover.math.reshape(x, split), filled(zeros.size(), 0), zeros);
    return mover.math.reshape(x, spread);
  }
};

struct Pad : GradientOpInterface::ExternalModel<Pad, nn::PadOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto pad = mlir::cast<nn::PadOp>(op);
    const RankedTensorType input = pad.getInput().getType();
    Mover mover(gradient);
    if (gradient.wants(0)) {
      Value g = gradient.ofResult();
      if (pad.getMode() == nn::PadMode::constant) {
        g = mover.slice(g, input.getShape(), pad.getLow(),
                        filled(input.getRank(), 1));
      } else {
        for (int64_t dim = 0; dim < input.getRank(); ++dim)
          g = foldBack(mover, g, pad, dim);
      }
      gradient.add(0, g);
    }
    if (gradient.wants(1) && pad.getMode() == nn::PadMode::constant)
      gradient.add(1, sumOfPadding(mover, gradient.ofResult(), pad));
    return success();
  }

 private:
  static Value sumOfPadding(Mover& mover, Value g, nn::PadOp pad) {
    const RankedTensorType type = pad.getInput().getType();
    const Value inside = mover.math.constant(type, 0);
    const Value outside = mover.pad(inside, 1, pad.getLow(), pad.getHigh());
    const auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    return mover.math.reduce(ReduceKind::sum, mover.math.multiply(g, outside),
                             dims);
  }

  // A run of padded elements along one dimension and the elements that they
  // repeat, in the same or the opposite order.
  struct Run {
    int64_t begin;
    int64_t size;
    int64_t source;
    bool turned;
  };

  static SmallVector<Run> runsOf(nn::PadMode mode, int64_t low, int64_t size,
                                 int64_t high) {
    SmallVector<Run> runs = {{low, size, 0, false}};
    switch (mode) {
      case nn::PadMode::constant:
        break;
      case nn::PadMode::edge:
        for (int64_t i = 0; i < low; ++i) runs.push_back({i, 1, 0, false});
        for (int64_t i = 0; i < high; ++i)
          runs.push_back({low + size + i, 1, size - 1, false});
        break;
      case nn::PadMode::reflect:
        if (low > 0) runs.push_back({0, low, 1, true});
        if (high > 0) runs.push_back({low + size, high, size - 1 - high, true});
        break;
      case nn::PadMode::wrap:
        for (int64_t end = low; end > 0; end -= size) {
          const int64_t count = std::min(end, size);
          runs.push_back({end - count, count, size - count, false});
        }
        for (int64_t at = 0; at < high; at += size)
          runs.push_back(
              {low + size + at, std::min(high - at, size), 0, false});
        break;
    }
    return runs;
  }

  // Adds the padding of one dimension to the elements that it repeats, and
  // removes the padding.
  static Value foldBack(Mover& mover, Value g, nn::PadOp pad, int64_t dim) {
    const int64_t low = pad.getLow()[dim], high = pad.getHigh()[dim],
                  size = pad.getInput().getType().getDimSize(dim);
    if (low == 0 && high == 0) return g;
    const int64_t rank = Mover::type(g).getRank();
    Value sum;
    for (const Run& run : runsOf(pad.getMode(), low, size, high)) {
      Sizes shape(Mover::type(g).getShape()),
          starts = filled(rank, 0), strides = filled(rank, 1),
          before = filled(rank, 0), after = filled(rank, 0);
      shape[dim] = run.size;
      starts[dim] = run.turned ? run.begin + run.size - 1 : run.begin;
      strides[dim] = run.turned ? -1 : 1;
      before[dim] = run.source;
      after[dim] = size - run.source - run.size;
      const Value part =
          mover.pad(mover.slice(g, shape, starts, strides), before, after);
      sum = sum ? mover.math.add(sum, part) : part;
    }
    return sum;
  }
};

//===----------------------------------------------------------------------===//
// Indexed moves
//===----------------------------------------------------------------------===//

// Returns the largest index of each axis, per index vector; limited to the
// largest value of the indices' type.
Value lastIndices(Mover& mover, Gradient& gradient, Value indices,
                  RankedTensorType input, ArrayRef<int64_t> axes) {
  const RankedTensorType type = Mover::type(indices);
  const unsigned width = type.getElementTypeBitWidth();
  SmallVector<llvm::APInt> last;
  for (int64_t axis : axes) {
    last.emplace_back(
        width, std::min(input.getDimSize(axis) - 1, llvm::maxIntN(width)),
        /*isSigned=*/true);
  }
  const RankedTensorType vector =
      type.clone(ArrayRef<int64_t>{static_cast<int64_t>(axes.size())});
  const Value constant =
      arith::ConstantOp::create(gradient.builder(), gradient.loc(),
                                mlir::DenseElementsAttr::get(vector, last));
  return mover.math.broadcast(constant, type, {type.getRank() - 1});
}

// Sums of 16-bit floats use f32.
struct Gather : GradientOpInterface::ExternalModel<Gather, nn::GatherOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto gather = mlir::cast<nn::GatherOp>(op);
    const RankedTensorType input = gather.getInput().getType();
    Mover mover(gradient);
    MathBuilder& b = gradient.math;
    // A gather clamps its indices; a scatter would drop the update.
    Value indices = gather.getIndices();
    indices =
        arith::MaxSIOp::create(gradient.builder(), gradient.loc(), indices,
                               b.constantInt(b.typeOf(indices), 0));
    indices = arith::MinSIOp::create(
        gradient.builder(), gradient.loc(), indices,
        lastIndices(mover, gradient, indices, input, gather.getAxes()));
    const Value updates = b.widen(gradient.ofResult());
    const Value zeros =
        b.constant(b.typeOf(updates).clone(input.getShape()), 0);
    const Value sums = mover.scatter(zeros, indices, updates, gather.getAxes(),
                                     gather.getBatchDims(), ScatterKind::add);
    gradient.add(0, b.narrow(sums, input));
    return success();
  }
};

struct Scatter : GradientOpInterface::ExternalModel<Scatter, nn::ScatterOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto scatter = mlir::cast<nn::ScatterOp>(op);
    const ScatterKind kind = scatter.getKind();
    if (kind != ScatterKind::add && kind != ScatterKind::set) {
      return op->emitOpError()
             << "expected kind 'add' or 'set' for a gradient, found '"
             << nn::stringifyScatterKind(kind)
             << "'; write it with an operation on the gathered elements";
    }
    Mover mover(gradient);
    MathBuilder& b = gradient.math;
    const Value g = gradient.ofResult(), indices = scatter.getIndices();
    const int64_t batch_dims = scatter.getBatchDims();
    const RankedTensorType updates = scatter.getUpdates().getType();
    if (gradient.wants(0)) {
      // Replaced elements have no effect on the result.
      gradient.add(0, kind == ScatterKind::add
                          ? g
                          : mover.scatter(g, indices, b.constant(updates, 0),
                                          scatter.getAxes(), batch_dims,
                                          ScatterKind::set));
    }
    if (gradient.wants(2)) {
      const Value taken =
          mover.gather(g, indices, scatter.getAxes(), batch_dims);
      const Value arrived = kind == ScatterKind::add
                                ? isInside(mover, gradient, scatter)
                                : isLast(mover, scatter);
      gradient.add(2, b.select(arrived, taken, b.constant(updates, 0)));
    }
    return success();
  }

 private:
  // True if an update's index is inside the tensor.
  static Value isInside(Mover& mover, Gradient& gradient,
                        nn::ScatterOp scatter) {
    MathBuilder& b = mover.math;
    const Value indices = scatter.getIndices();
    const RankedTensorType type = b.typeOf(indices);
    const Value last =
        lastIndices(mover, gradient, indices, scatter.getInput().getType(),
                    scatter.getAxes());
    const Value each = b.andInt(
        b.compare(arith::CmpIPredicate::sge, indices, b.constantInt(type, 0)),
        b.compare(arith::CmpIPredicate::sle, indices, last));
    const int64_t vectors = type.getRank() - 1;
    return b.broadcast(b.reduce(ReduceKind::min, each, {vectors}),
                       scatter.getUpdates().getType().clone(b.i1()),
                       llvm::to_vector(llvm::seq<int64_t>(0, vectors)));
  }

  // True if an update is the last one at its place: each place stores the
  // number of its last update, and each update compares this with its own
  // number.
  static Value isLast(Mover& mover, nn::ScatterOp scatter) {
    MathBuilder& b = mover.math;
    const Value indices = scatter.getIndices();
    const RankedTensorType updates =
        scatter.getUpdates().getType().clone(b.i64());
    const auto vectors = b.typeOf(indices).getShape().drop_back();
    int64_t count = 1;
    for (int64_t size : vectors) count *= size;
    const Value numbers = b.broadcast(
        b.reshape(b.iota(RankedTensorType::get({count}, b.i64()), 0), vectors),
        updates, llvm::to_vector(llvm::seq<int64_t>(0, vectors.size())));
    const Value none =
        b.constantInt(scatter.getInput().getType().clone(b.i64()), -1);
    const int64_t batch_dims = scatter.getBatchDims();
    const Value owners =
        mover.scatter(none, indices, numbers, scatter.getAxes(), batch_dims,
                      ScatterKind::set);
    return b.compare(
        arith::CmpIPredicate::eq, numbers,
        mover.gather(owners, indices, scatter.getAxes(), batch_dims));
  }
};

// Scatters values back to their places; each place gets at most one.
struct TopK : GradientOpInterface::ExternalModel<TopK, nn::TopKOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    if (!gradient.ofResult(0)) return success();
    auto top_k = mlir::cast<nn::TopKOp>(op);
    MathBuilder& b = gradient.math;
    const RankedTensorType input = top_k.getInput().getType();
    Sizes one_each(top_k.getIndices().getType().getShape());
    one_each.push_back(1);
    const int64_t axis = input.getRank() - 1;
    gradient.add(
        0, Mover(gradient).scatter(
               b.constant(input, 0), b.reshape(top_k.getIndices(), one_each),
               gradient.ofResult(0), {axis}, axis, ScatterKind::add));
    return success();
  }
};

}  // namespace

void registerMovementGradients(mlir::MLIRContext* context) {
  nn::BroadcastOp::attachInterface<Broadcast>(*context);
  nn::ReshapeOp::attachInterface<Reshape>(*context);
  nn::TransposeOp::attachInterface<Transpose>(*context);
  nn::ConcatOp::attachInterface<Concat>(*context);
  nn::SliceOp::attachInterface<Slice>(*context);
  nn::PadOp::attachInterface<Pad>(*context);
  nn::GatherOp::attachInterface<Gather>(*context);
  nn::ScatterOp::attachInterface<Scatter>(*context);
  nn::TopKOp::attachInterface<TopK>(*context);
}

}  // namespace partita::autodiff
