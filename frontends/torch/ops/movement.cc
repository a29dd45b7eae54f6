// Operators that only move elements: reshape, transpose, repeat, concatenate,
// pad, convert.
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

// Limit of counts and paddings, so that sums do not overflow.
constexpr int64_t kMaxSize = int64_t{1} << 31;

// Replaces one -1 by what the number of elements leaves.
Shape inferSize(NodeContext& n, int64_t elements, Dims requested) {
  Shape shape(requested);
  int64_t known = 1, unknown = -1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    const bool repeats = size == -1 && unknown >= 0;
    if (size < -1 || repeats ||
        (size >= 0 && __builtin_mul_overflow(known, size, &known))) {
      n.error("expected sizes with at most one -1, found " +
              toString(requested));
      return {};
    }
    if (size == -1) unknown = static_cast<int64_t>(i);
  }
  if (unknown < 0) return shape;
  if (known == 0 || elements % known != 0) {
    n.error("cannot reshape " + llvm::Twine(elements) + " elements to " +
            toString(requested));
    return {};
  }
  shape[unknown] = elements / known;
  return shape;
}

// Inserts a dimension before each repeated one and broadcasts along it.
Val repeat(Emitter& e, Val x, Dims counts) {
  Shape expanded, dims, result;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (counts[i] != 1) expanded.push_back(counts[i]);
    dims.push_back(static_cast<int64_t>(expanded.size()));
    expanded.push_back(x.dim(i));
    result.push_back(x.dim(i) * counts[i]);
  }
  return e.reshape(e.broadcastDims(x, expanded, dims), result);
}

Shape transposed(NodeContext& n, int64_t rank) {
  Shape perm = countUp(rank);
  if (n.op == "aten.numpy_T") return {perm.rbegin(), perm.rend()};
  if (n.op == "aten.t") {
    if (rank > 2) n.error("expected a matrix");
    if (rank == 2) std::swap(perm[0], perm[1]);
    return perm;
  }
  const int64_t a = n.axis("dim0", rank), b = n.axis("dim1", rank);
  if (!n.failed()) std::swap(perm[a], perm[b]);
  return perm;
}

Shape permutation(NodeContext& n, int64_t rank) {
  Shape perm = n.axes("dims", rank);
  if (!n.failed() && static_cast<int64_t>(perm.size()) != rank)
    n.error("expected a permutation of the dimensions");
  return n.failed() ? countUp(rank) : perm;
}

}  // namespace

Val importIdentity(NodeContext& n) { return n.tensor("self"); }

Val writeIdentity(NodeContext&, Val, Val value) { return value; }

Val importView(NodeContext& n) {
  Val x = n.tensor("self");
  const Shape requested = n.ints(n.has("shape") ? "shape" : "size");
  if (n.failed()) return {};
  const Shape shape = inferSize(n, x.size(), requested);
  return n.failed() ? Val() : n.e.reshape(x, shape);
}

Val importViewLike(NodeContext& n) {
  Val x = n.tensor("self"), other = n.tensor("other");
  if (n.failed()) return {};
  return n.op == "aten.expand_as" ? n.e.broadcast(x, other.shape())
                                  : n.e.reshape(x, other.shape());
}

Val importUnflatten(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank());
  const Shape sizes = n.ints("sizes");
  if (n.failed()) return {};
  const Shape split = inferSize(n, x.dim(axis), sizes);
  if (n.failed()) return {};
  Shape shape(x.shape().take_front(axis));
  llvm::append_range(shape, split);
  llvm::append_range(shape, x.shape().drop_front(axis + 1));
  return n.e.reshape(x, shape);
}

Val importFlatten(NodeContext& n) {
  Val x = n.tensor("self");
  if (!n.failed() && x.rank() == 0) return n.e.reshape(x, {1});
  const int64_t start = n.axis("start_dim", x.rank(), 0),
                end = n.axis("end_dim", x.rank(), -1);
  if (n.failed()) return {};
  if (start > end) return n.error("expected start_dim before end_dim");
  Shape shape(x.shape().take_front(start));
  shape.push_back(product(x.shape().slice(start, end - start + 1)));
  llvm::append_range(shape, x.shape().drop_front(end + 1));
  return n.e.reshape(x, shape);
}

Val importSqueeze(NodeContext& n) {
  Val x = n.tensor("self");
  Shape dims = countUp(x.rank());
  if (n.has("dim") && !n.failed() && x.rank() > 0) {
    dims.clear();
    for (int64_t dim : n.ints("dim")) dims.push_back(n.wrapAxis(dim, x.rank()));
  }
  if (n.failed()) return {};
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (x.dim(i) != 1 || !llvm::is_contained(dims, i))
      shape.push_back(x.dim(i));
  return n.e.reshape(x, shape);
}

Val importUnsqueeze(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank() + 1);
  if (n.failed()) return {};
  Shape shape(x.shape());
  shape.insert(shape.begin() + axis, 1);
  return n.e.reshape(x, shape);
}

Val writeReshaped(NodeContext& n, Val base, Val value) {
  return n.e.reshape(value, base.shape());
}

Val importTranspose(NodeContext& n) {
  Val x = n.tensor("self");
  const Shape perm = transposed(n, x.rank());
  return n.failed() ? Val() : n.e.transpose(x, perm);
}

Val writeTranspose(NodeContext& n, Val base, Val value) {
  return n.e.transpose(value,
                       builder::inversePermutation(transposed(n, base.rank())));
}

Val importPermute(NodeContext& n) {
  Val x = n.tensor("self");
  const Shape perm = permutation(n, x.rank());
  return n.failed() ? Val() : n.e.transpose(x, perm);
}

Val writePermute(NodeContext& n, Val base, Val value) {
  return n.e.transpose(
      value, builder::inversePermutation(permutation(n, base.rank())));
}

Val importExpand(NodeContext& n) {
  Val x = n.tensor("self");
  Shape shape = n.ints("size");
  if (n.failed()) return {};
  const int64_t added = static_cast<int64_t>(shape.size()) - x.rank();
  if (added < 0)
    return n.error("expected at least " + llvm::Twine(x.rank()) + " sizes");
  for (auto [i, size] : llvm::enumerate(shape))
    if (size == -1 && static_cast<int64_t>(i) >= added)
      size = x.dim(static_cast<int64_t>(i) - added);
  return n.e.broadcast(x, shape);
}

Val importRepeat(NodeContext& n) {
  Val x = n.tensor("self");
  Shape counts = n.ints(n.has("repeats") ? "repeats" : "dims");
  if (n.failed()) return {};
  Shape shape(x.shape());
  while (shape.size() < counts.size()) shape.insert(shape.begin(), 1);
  while (counts.size() < shape.size()) counts.insert(counts.begin(), 1);
  if (llvm::any_of(
          counts, [](int64_t count) { return count < 0 || count >= kMaxSize; }))
    return n.error("expected counts from 0 to below 2^31");
  return repeat(n.e, n.e.reshape(x, shape), counts);
}

Val importRepeatInterleave(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t repeats = n.integer("repeats");
  if (!n.failed() && !n.has("dim")) x = n.e.reshape(x, {x.size()});
  const int64_t axis = n.axis("dim", x ? x.rank() : 1, 0);
  if (n.failed()) return {};
  int64_t size = 0;
  if (repeats < 0 || repeats > kMaxSize ||
      __builtin_mul_overflow(x.dim(axis), repeats, &size))
    return n.error("expected a small number of repeats that is not negative");
  Shape expanded(x.shape()), result(x.shape()), dims = countUp(x.rank());
  expanded.insert(expanded.begin() + axis + 1, repeats);
  for (int64_t& dim : dims) dim += dim > axis ? 1 : 0;
  result[axis] = size;
  return n.e.reshape(n.e.broadcastDims(x, expanded, dims), result);
}

Val importCat(NodeContext& n) {
  llvm::SmallVector<Val> inputs = n.tensors("tensors");
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  if (inputs.empty() || !llvm::all_of(inputs, [](Val v) { return bool(v); }))
    return n.error("expected tensors");
  // PyTorch skips empty vectors.
  llvm::SmallVector<Val> kept;
  for (Val input : inputs)
    if (input.shape() != Dims{0}) kept.push_back(n.e.cast(input, type));
  if (kept.empty()) return n.e.cast(inputs.front(), type);
  const int64_t axis = n.axis("dim", kept.front().rank(), 0);
  return n.failed() ? Val() : n.e.concat(kept, axis);
}

Val importStack(NodeContext& n) {
  llvm::SmallVector<Val> inputs = n.tensors("tensors");
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  if (inputs.empty() || !llvm::all_of(inputs, [](Val v) { return bool(v); }))
    return n.error("expected tensors");
  const int64_t rank = inputs.front().rank();
  const int64_t axis = n.axis("dim", rank + 1, 0);
  if (n.failed()) return {};
  for (Val& input : inputs) {
    if (input.rank() != rank) return n.error("expected tensors of one rank");
    Shape shape(input.shape());
    shape.insert(shape.begin() + axis, 1);
    input = n.e.reshape(n.e.cast(input, type), shape);
  }
  return n.e.concat(inputs, axis);
}

Val importPad(NodeContext& n) {
  Val x = n.tensor("self");
  const Shape pads = n.ints(n.has("pad") ? "pad" : "padding");
  const std::string mode = n.text("mode", "constant");
  if (n.failed()) return {};
  const int64_t padded = static_cast<int64_t>(pads.size()) / 2;
  if (pads.size() % 2 != 0 || padded > x.rank() ||
      llvm::any_of(pads, [](int64_t pad) {
        return pad <= -kMaxSize || pad >= kMaxSize;
      }))
    return n.error("expected two paddings for each of the last dimensions");
  Shape low(x.rank(), 0), high(x.rank(), 0);
  // From the last dimension to the first.
  for (int64_t i = 0; i < padded; ++i) {
    low[x.rank() - 1 - i] = pads[2 * i];
    high[x.rank() - 1 - i] = pads[2 * i + 1];
  }
  auto kind = nn::PadMode::constant;
  if (mode == "reflect")
    kind = nn::PadMode::reflect;
  else if (mode == "replicate")
    kind = nn::PadMode::edge;
  else if (mode == "circular")
    kind = nn::PadMode::wrap;
  else if (mode != "constant")
    return n.unsupported("mode=" + mode);
  Val value = n.has("value") ? n.operand("value", x.elementType())
                             : n.e.splat(0, x.elementType());
  return n.failed() ? Val() : n.e.pad(x, value, low, high, kind);
}

Val importRoll(NodeContext& n) {
  Val x = n.tensor("self");
  const Shape shifts = n.ints("shifts"), dims = n.ints("dims", Shape());
  if (n.failed()) return {};
  const Shape whole(x.shape());
  if (dims.empty() && shifts.size() == 1) x = n.e.reshape(x, {x.size()});
  const Shape axes = dims.empty() ? Shape{0} : dims;
  if (axes.size() != shifts.size())
    return n.error("expected one shift per dimension");
  for (auto [shift, dim] : llvm::zip(shifts, axes)) {
    const int64_t axis = n.wrapAxis(dim, x.rank());
    if (n.failed()) return {};
    const int64_t size = x.dim(axis);
    if (size == 0) continue;
    const int64_t moved = ((shift % size) + size) % size;
    if (moved == 0) continue;
    x = n.e.concat({n.e.sliceDim(x, axis, size - moved, moved),
                    n.e.sliceDim(x, axis, 0, size - moved)},
                   axis);
  }
  return n.e.reshape(x, whole);
}

Val importFlip(NodeContext& n) {
  Val x = n.tensor("self");
  for (int64_t dim : n.ints("dims")) {
    const int64_t axis = n.wrapAxis(dim, x.rank());
    if (n.failed()) return {};
    x = n.e.reverse(x, axis);
  }
  return x;
}

Val importTriangle(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t diagonal = n.integer("diagonal", 0);
  if (n.failed()) return {};
  if (x.rank() < 2) return n.error("expected a tensor of rank 2 or more");
  const Dims matrix = x.shape().take_back(2);
  Val row = n.e.iota(matrix, 0, n.e.i64()),
      column = n.e.iota(matrix, 1, n.e.i64());
  constexpr int64_t kLimit = int64_t{1} << 48;
  Val limit =
      n.e.add(row, n.e.ints({std::clamp(diagonal, -kLimit, kLimit)}, {}));
  const bool is_upper = n.op == "aten.triu";
  Val kept = n.e.compare(is_upper ? Compare::ge : Compare::le, column, limit);
  return n.e.select(kept, x, n.e.splatLike(0, x));
}

Val importTo(NodeContext& n) {
  Val x = n.tensor("self");
  const ElementType type = n.resultType();
  return n.failed() ? Val() : n.e.cast(x, type);
}

Val importCopy(NodeContext& n) {
  Val x = n.tensor("self");
  Val source = n.operand("src", x.elementType());
  return n.failed() ? Val() : n.e.broadcast(source, x.shape());
}

}  // namespace partita::torch
