// Decomposition of the gradient of windowed reductions. The rows of the
// result's gradient are spread out by the stride. For a sum, the gradient is a
// windowed sum over the spread rows. For a maximum or minimum, each place in
// the window contributes the rows whose extreme element is there.
#include <limits>

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

using Results = FailureOr<SmallVector<Value>>;
using Sizes = SmallVector<int64_t>;

class WindowGrad {
 public:
  WindowGrad(mlir::OpBuilder& builder, ReduceWindowGradOp op)
      : builder_(builder),
        b_(builder, op.getLoc()),
        op_(op),
        shape_(op.getType().getShape()),
        rank_(op.getType().getRank()) {}

  Value sum();
  Value extreme();

 private:
  Value scalar(mlir::Type element, double value);
  // Shifts x by `offsets` along each dimension into a tensor of `shape`.
  // Uncovered elements are `filler`.
  Value place(Value x, ArrayRef<int64_t> offsets, ArrayRef<int64_t> shape,
              Value filler);
  // Moves row i to row i * stride of a dimension of size * stride; the other
  // rows are filler.
  Value spreadOut(Value x, Value filler);
  // Moves row i to row i * stride + offset of the input; the other rows are
  // filler.
  Value placeByStride(Value x, ArrayRef<int64_t> offsets, Value filler);
  // The element at place `at` of every window, and a mask of the elements that
  // are not padding (null: all).
  Value elementsAt(Value input, ArrayRef<int64_t> at);
  Value insideAt(ArrayRef<int64_t> at);
  // The place of the first extreme element of each window in row-major order,
  // as i32; -1 if the window has only padding.
  Value extremePlaces(Value input);
  std::vector<Sizes> places();

  mlir::OpBuilder& builder_;
  MathBuilder b_;
  ReduceWindowGradOp op_;
  ArrayRef<int64_t> shape_;
  int64_t rank_;
};

Value WindowGrad::scalar(mlir::Type element, double value) {
  const RankedTensorType type = RankedTensorType::get({}, element);
  if (element.isInteger())
    return b_.constantInt(type, static_cast<int64_t>(value));
  return b_.constant(type, value);
}

Value WindowGrad::place(Value x, ArrayRef<int64_t> offsets,
                        ArrayRef<int64_t> shape, Value filler) {
  const ArrayRef<int64_t> from = b_.typeOf(x).getShape();
  Sizes starts, strides(rank_, 1), kept, low, high;
  for (int64_t dim = 0; dim < rank_; ++dim) {
    const int64_t first = std::clamp<int64_t>(-offsets[dim], 0, from[dim]);
    const int64_t last =
        std::clamp<int64_t>(shape[dim] - offsets[dim], first, from[dim]);
    starts.push_back(first);
    kept.push_back(last - first);
    low.push_back(
        std::clamp<int64_t>(first + offsets[dim], 0, shape[dim] - kept[dim]));
    high.push_back(shape[dim] - kept[dim] - low[dim]);
  }
  const RankedTensorType type = b_.typeOf(x).clone(kept);
  if (type != x.getType())
    x = SliceOp::create(builder_, op_.getLoc(), type, x, starts, strides);
  if (type.getShape() == shape) return x;
  return PadOp::create(builder_, op_.getLoc(), b_.typeOf(x).clone(shape), x,
                       filler, low, high);
}

Value WindowGrad::spreadOut(Value x, Value filler) {
  Sizes split, padded, spread, none;
  Sizes high;
  for (int64_t dim = 0; dim < rank_; ++dim) {
    const int64_t size = b_.typeOf(x).getDimSize(dim),
                  stride = op_.getStrides()[dim];
    split.push_back(size);
    padded.push_back(size);
    high.push_back(0);
    spread.push_back(size * stride);
    if (stride == 1) continue;
    split.push_back(1);
    padded.push_back(stride);
    high.push_back(stride - 1);
  }
  if (split.size() == static_cast<size_t>(rank_)) return x;
  none.assign(split.size(), 0);
  x = b_.reshape(x, split);
  x = PadOp::create(builder_, op_.getLoc(), b_.typeOf(x).clone(padded), x,
                    filler, none, high);
  return b_.reshape(x, spread);
}

Value WindowGrad::sum() {
  const Value grad = b_.widen(op_.getResultGrad());
  const mlir::Type element = b_.typeOf(grad).getElementType();
  const Value zero = scalar(element, 0);
  // Row i of the input is covered by the windows that begin at rows i + low -
  // reach to i + low of the padded input.
  Sizes offsets, shape, ones(rank_, 1), none(rank_, 0);
  for (int64_t dim = 0; dim < rank_; ++dim) {
    const int64_t reach = op_.getDilations()[dim] * (op_.getWindow()[dim] - 1);
    offsets.push_back(reach - op_.getLow()[dim]);
    shape.push_back(shape_[dim] + reach);
  }
  const Value moved = place(spreadOut(grad, zero), offsets, shape, zero);
  return ReduceWindowOp::create(
      builder_, op_.getLoc(), op_.getType().clone(element), ReduceKind::sum,
      moved, op_.getWindow(), ones, op_.getDilations(), none, none);
}

std::vector<Sizes> WindowGrad::places() {
  int64_t count = 1;
  for (int64_t size : op_.getWindow()) count *= size;
  std::vector<Sizes> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(indexAt(op_.getWindow(), i));
  return all;
}

Value WindowGrad::elementsAt(Value input, ArrayRef<int64_t> at) {
  const bool is_max = op_.getKind() == ReduceKind::max;
  const double infinity = std::numeric_limits<double>::infinity();
  const Value filler =
      scalar(b_.typeOf(input).getElementType(), is_max ? -infinity : infinity);
  const ArrayRef<int64_t> out = op_.getResultGrad().getType().getShape();
  Sizes offsets, starts(rank_, 0), reached;
  for (int64_t dim = 0; dim < rank_; ++dim) {
    offsets.push_back(op_.getLow()[dim] - at[dim] * op_.getDilations()[dim]);
    reached.push_back(
        out[dim] == 0 ? 0 : (out[dim] - 1) * op_.getStrides()[dim] + 1);
  }
  const Value moved = place(input, offsets, reached, filler);
  if (reached == Sizes(out)) return moved;
  return SliceOp::create(builder_, op_.getLoc(), b_.typeOf(moved).clone(out),
                         moved, starts, op_.getStrides());
}

Value WindowGrad::insideAt(ArrayRef<int64_t> at) {
  RankedTensorType type = op_.getResultGrad().getType();
  type = type.clone(b_.i1());
  Value inside;
  for (int64_t dim = 0; dim < rank_; ++dim) {
    const int64_t first = at[dim] * op_.getDilations()[dim] - op_.getLow()[dim];
    const int64_t last =
        first + (type.getDimSize(dim) - 1) * op_.getStrides()[dim];
    if (first >= 0 && last < shape_[dim]) continue;
    const RankedTensorType row =
        RankedTensorType::get({type.getDimSize(dim)}, b_.i64());
    const Value position = b_.addInt(
        b_.multiplyInt(b_.iota(row, 0), op_.getStrides()[dim]), first);
    // One unsigned comparison replaces two signed ones.
    const Value here =
        b_.broadcast(b_.compare(arith::CmpIPredicate::ult, position,
                                b_.constantInt(row, shape_[dim])),
                     type, dim);
    inside =
        inside
            ? Value(arith::AndIOp::create(builder_, op_.getLoc(), inside, here))
            : here;
  }
  return inside;
}

Value WindowGrad::extremePlaces(Value input) {
  using Predicate = arith::CmpFPredicate;
  const bool is_max = op_.getKind() == ReduceKind::max;
  RankedTensorType type = op_.getResultGrad().getType();
  type = type.clone(builder_.getI32Type());
  Value extreme, found = b_.constantInt(type, -1);
  for (const auto& [number, at] : llvm::enumerate(places())) {
    const Value element = elementsAt(input, at), inside = insideAt(at);
    const Value here = b_.constantInt(type, static_cast<int64_t>(number));
    if (!extreme) {
      extreme = element;
      found = inside ? b_.select(inside, here, found) : here;
      continue;
    }
    // Unordered comparison: a NaN replaces a number. Padding never replaces an
    // element, and the first element replaces padding.
    Value better =
        b_.compare(is_max ? Predicate::UGT : Predicate::ULT, element, extreme);
    const auto both = [&](Value x, Value y) {
      return arith::AndIOp::create(builder_, op_.getLoc(), x, y);
    };
    better = both(better, b_.compare(Predicate::ORD, extreme, extreme));
    Value first =
        b_.compare(arith::CmpIPredicate::slt, found, b_.constantInt(type, 0));
    if (inside) first = both(first, inside);
    better = arith::OrIOp::create(builder_, op_.getLoc(), better, first);
    extreme = b_.select(better, element, extreme);
    found = b_.select(better, here, found);
  }
  return found;
}

// Row o of the windows goes to row o * stride + offset = (o + whole) * stride +
// rest. Moving by `whole` before spreading leaves one movement per reader, so
// that kernels store neither the spread rows nor the moved ones.
Value WindowGrad::placeByStride(Value x, ArrayRef<int64_t> offsets,
                                Value filler) {
  Sizes whole, coarse, split, low, high, spread;
  for (int64_t dim = 0; dim < rank_; ++dim) {
    const int64_t stride = op_.getStrides()[dim];
    const int64_t moved = llvm::divideFloorSigned(offsets[dim], stride);
    const int64_t rest = offsets[dim] - moved * stride;
    whole.push_back(moved);
    coarse.push_back(llvm::divideCeilSigned(shape_[dim], stride));
    spread.push_back(coarse[dim] * stride);
    split.push_back(coarse[dim]);
    low.push_back(0);
    high.push_back(0);
    if (stride == 1) continue;
    split.push_back(1);
    low.push_back(rest);
    high.push_back(stride - 1 - rest);
  }
  x = place(x, whole, coarse, filler);
  if (split.size() == static_cast<size_t>(rank_)) return x;
  Sizes padded = split;
  for (size_t dim = 0; dim < split.size(); ++dim)
    padded[dim] += low[dim] + high[dim];
  x = b_.reshape(x, split);
  x = PadOp::create(builder_, op_.getLoc(), b_.typeOf(x).clone(padded), x,
                    filler, low, high);
  x = b_.reshape(x, spread);
  const RankedTensorType type = b_.typeOf(x).clone(shape_);
  if (type == x.getType()) return x;
  return SliceOp::create(builder_, op_.getLoc(), type, x, Sizes(rank_, 0),
                         Sizes(rank_, 1));
}

// The places and the gradient are moved before they are compared: kernels then
// compute the places once, not once per place.
Value WindowGrad::extreme() {
  const Value grad = b_.widen(op_.getResultGrad());
  const Value zero = scalar(b_.typeOf(grad).getElementType(), 0);
  const Value found = extremePlaces(b_.widen(op_.getInput()));
  const Value nowhere = scalar(b_.typeOf(found).getElementType(), -1);
  Value total;
  for (const auto& [number, at] : llvm::enumerate(places())) {
    Sizes offsets;
    for (int64_t dim = 0; dim < rank_; ++dim)
      offsets.push_back(at[dim] * op_.getDilations()[dim] - op_.getLow()[dim]);
    const Value moved = placeByStride(found, offsets, nowhere);
    const Value is_here = b_.compare(
        arith::CmpIPredicate::eq, moved,
        b_.constantInt(b_.typeOf(moved), static_cast<int64_t>(number)));
    const Value part = placeByStride(grad, offsets, zero);
    const Value chosen =
        b_.select(is_here, part, b_.constant(b_.typeOf(part), 0));
    total = total ? b_.add(total, chosen) : chosen;
  }
  return total;
}

}  // namespace

Results ReduceWindowGradOp::decompose(mlir::OpBuilder& builder) {
  WindowGrad grad(builder, *this);
  const Value result =
      getKind() == ReduceKind::sum ? grad.sum() : grad.extreme();
  return SmallVector<Value>{
      MathBuilder(builder, getLoc()).narrow(result, getType())};
}

}  // namespace partita::nn
