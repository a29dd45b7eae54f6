// Operators that only move elements: reshape, transpose, slice, pad,
// concatenate, repeat.
#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::onnx {
namespace {

// Axes from input `i` (newer opsets) or the attribute. Sets `is_given` to false
// if both are absent.
FailureOr<Shape> axesOf(NodeContext& n, unsigned i, bool& is_given) {
  is_given = true;
  if (n.has(i)) return n.constInts(i);
  is_given = n.hasAttr("axes");
  return n.attrInts("axes");
}

FailureOr<Shape> reshapedShape(NodeContext& n, Val x, Dims requested) {
  Shape shape(requested);
  bool allow_zero = n.attrInt("allowzero", 0);
  int64_t known = 1, unknown = -1;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= x.rank())
        return n.error("size 0 keeps a dimension that the input does not have");
      shape[i] = x.dim(i);
    }
    if (shape[i] < -1 || (shape[i] == -1 && unknown >= 0))
      return n.error("expected sizes with at most one -1");
    if (shape[i] == -1) {
      unknown = i;
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      return n.error("expected sizes whose product is that of the input's");
    }
  }
  if (unknown >= 0) {
    if (known == 0 || x.size() % known != 0) {
      return n.error("cannot reshape " + toString(x.shape()) + " to " +
                     toString(requested));
    }
    shape[unknown] = x.size() / known;
  }
  return shape;
}

}  // namespace

LogicalResult importReshape(NodeContext& n) {
  Val x = n.in(0);
  auto requested =
      n.has(1) ? n.constInts(1) : FailureOr<Shape>(n.attrInts("shape"));
  if (failed(requested)) return failure();
  auto shape = reshapedShape(n, x, *requested);
  if (failed(shape)) return failure();
  return n.result(n.e.reshape(x, *shape));
}

LogicalResult importFlatten(NodeContext& n) {
  Val x = n.in(0);
  int64_t axis = n.attrInt("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return n.error("expected an axis of the input");
  if (axis < 0) axis += x.rank();
  return n.result(n.e.reshape(x, {product(x.shape().take_front(axis)),
                                  product(x.shape().drop_front(axis))}));
}

LogicalResult importSqueeze(NodeContext& n) {
  Val x = n.in(0);
  bool is_given;
  auto listed = axesOf(n, 1, is_given);
  if (failed(listed)) return failure();
  auto axes = n.axes(*listed, x.rank());
  if (failed(axes)) return failure();
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool is_squeezed = is_given ? llvm::is_contained(*axes, i) : x.dim(i) == 1;
    if (is_squeezed && x.dim(i) != 1)
      return n.error("expected a size of 1 at axis " + llvm::Twine(i));
    if (!is_squeezed) shape.push_back(x.dim(i));
  }
  return n.result(n.e.reshape(x, shape));
}

LogicalResult importUnsqueeze(NodeContext& n) {
  Val x = n.in(0);
  bool is_given;
  auto listed = axesOf(n, 1, is_given);
  if (failed(listed)) return failure();
  int64_t rank = x.rank() + listed->size();
  auto axes = n.axes(*listed, rank);
  if (failed(axes)) return failure();
  Shape shape;
  int64_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(llvm::is_contained(*axes, i) ? 1 : x.dim(next++));
  return n.result(n.e.reshape(x, shape));
}

LogicalResult importTranspose(NodeContext& n) {
  Val x = n.in(0);
  Shape reversed = countUp(x.rank());
  std::reverse(reversed.begin(), reversed.end());
  auto perm = n.axes(n.attrInts("perm", reversed), x.rank());
  if (failed(perm)) return failure();
  if (static_cast<int64_t>(perm->size()) != x.rank())
    return n.error("expected a permutation of the input's dimensions");
  return n.result(n.e.transpose(x, *perm));
}

LogicalResult importExpand(NodeContext& n) {
  Val x = n.in(0);
  auto shape = n.constInts(1);
  if (failed(shape)) return failure();
  return n.result(n.e.broadcast(x, n.e.broadcastShape(x.shape(), *shape)));
}

LogicalResult importTile(NodeContext& n) {
  Val x = n.in(0);
  auto repeats = n.constInts(1);
  if (failed(repeats)) return failure();
  if (static_cast<int64_t>(repeats->size()) != x.rank())
    return n.error("expected one repeat count per dimension");
  // Inserts a dimension before each repeated dimension and broadcasts along it.
  Shape expanded, dims, result;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t count = (*repeats)[i];
    if (count < 0)
      return n.error("expected repeat counts that are not negative");
    if (count != 1) expanded.push_back(count);
    dims.push_back(expanded.size());
    expanded.push_back(x.dim(i));
    result.push_back(x.dim(i) * count);
  }
  return n.result(n.e.reshape(n.e.broadcastDims(x, expanded, dims), result));
}

LogicalResult importConcat(NodeContext& n) {
  llvm::SmallVector<Val> inputs = n.ins();
  auto axis = n.axis(n.attrInt("axis", 1), inputs[0].rank());
  if (failed(axis)) return failure();
  return n.result(n.e.concat(inputs, *axis));
}

LogicalResult importSplit(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  if (failed(axis)) return failure();
  Shape sizes = n.attrInts("split");
  if (n.has(1)) {
    auto given = n.constInts(1);
    if (failed(given)) return failure();
    sizes = *given;
  }
  if (sizes.empty()) {
    int64_t count = n.attrInt("num_outputs", n.node.outputs.size());
    if (count <= 0) return n.error("expected a positive number of outputs");
    // The last part is smaller if the size does not divide.
    int64_t chunk = (x.dim(*axis) + count - 1) / count, left = x.dim(*axis);
    for (int64_t i = 0; i < count; ++i, left -= chunk)
      sizes.push_back(std::clamp<int64_t>(left, 0, chunk));
  }
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (size < 0 || size > x.dim(*axis) - start)
      return n.error("expected parts that add up to the axis's size");
    if (n.wants(i)) n.out(i, n.e.sliceDim(x, *axis, start, size));
    start += size;
  }
  if (start != x.dim(*axis))
    return n.error("expected parts that add up to the axis's size");
  return success();
}

LogicalResult importSlice(NodeContext& n) {
  Val x = n.in(0);
  FailureOr<Shape> starts = n.attrInts("starts"), ends = n.attrInts("ends"),
                   axes = n.attrInts("axes"), steps = Shape();
  if (n.opset >= 10) {
    if (!n.has(1) || !n.has(2)) return n.error("expected starts and ends");
    starts = n.constInts(1);
    ends = n.constInts(2);
    if (n.has(3)) axes = n.constInts(3);
    if (n.has(4)) steps = n.constInts(4);
  }
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  if (axes->empty()) axes = countUp(starts->size());
  if (steps->empty()) steps = Shape(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    return n.error("expected starts, ends, axes and steps of one length");
  }
  auto dims = n.axes(*axes, x.rank());
  if (failed(dims)) return failure();
  Shape offsets(x.rank(), 0), sizes(x.shape()), strides(x.rank(), 1);
  for (size_t i = 0; i < dims->size(); ++i) {
    int64_t size = x.dim((*dims)[i]), start = (*starts)[i], end = (*ends)[i],
            step = (*steps)[i];
    if (step == 0) return n.error("expected steps other than 0");
    step = std::clamp<int64_t>(step, -size - 1, size + 1);
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    start = std::clamp(start < 0 ? start + size : start, low, high);
    end = std::clamp(end < 0 ? end + size : end, low, high);
    int64_t span = step > 0 ? end - start : start - end,
            stride = std::abs(step);
    int64_t count = span <= 0 ? 0 : (span + stride - 1) / stride;
    offsets[(*dims)[i]] = count == 0 ? 0 : start;
    sizes[(*dims)[i]] = count;
    strides[(*dims)[i]] = step;
  }
  return n.result(n.e.slice(x, offsets, sizes, strides));
}

LogicalResult importPad(NodeContext& n) {
  Val x = n.in(0);
  auto mode = llvm::StringSwitch<std::optional<nn::PadMode>>(
                  n.attrString("mode", "constant"))
                  .Case("constant", nn::PadMode::constant)
                  .Case("edge", nn::PadMode::edge)
                  .Case("reflect", nn::PadMode::reflect)
                  .Case("wrap", nn::PadMode::wrap)
                  .Default(std::nullopt);
  if (!mode) return n.unsupported("mode=" + n.attrString("mode", ""));
  FailureOr<Shape> pads = n.attrInts("pads", n.attrInts("paddings"));
  Val value = n.e.splat(n.attrFloat("value", 0), x.elementType());
  FailureOr<Shape> axes = countUp(x.rank());
  if (n.opset >= 11) {
    if (!n.has(1)) return n.error("expected pads");
    pads = n.constInts(1);
    if (n.has(2)) value = n.e.reshape(n.in(2), {});
    if (n.has(3)) axes = n.constInts(3);
  }
  if (failed(pads) || failed(axes)) return failure();
  auto dims = n.axes(*axes, x.rank());
  if (failed(dims)) return failure();
  if (pads->size() != 2 * dims->size())
    return n.error("expected two paddings per axis");
  if (value.element() != x.element())
    return n.error("expected a padding value of the input's type");
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i < dims->size(); ++i) {
    low[(*dims)[i]] = (*pads)[i];
    high[(*dims)[i]] = (*pads)[i + dims->size()];
  }
  return n.result(n.e.pad(x, value, low, high, *mode));
}

LogicalResult importTrilu(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() < 2) return n.error("expected an input of rank 2 or more");
  int64_t k = 0;
  if (n.has(1)) {
    auto given = n.constInts(1);
    if (failed(given)) return failure();
    if (given->size() != 1) return n.error("expected a scalar k");
    k = (*given)[0];
  }
  Dims matrix = x.shape().take_back(2);
  Val row = n.e.iota(matrix, 0, n.e.i64()),
      column = n.e.iota(matrix, 1, n.e.i64());
  bool is_upper = n.attrInt("upper", 1);
  Val diagonal = n.e.add(
      row,
      n.e.ints({std::clamp<int64_t>(k, -(int64_t{1} << 48), int64_t{1} << 48)},
               {}));
  Val kept =
      n.e.compare(is_upper ? Compare::ge : Compare::le, column, diagonal);
  return n.result(n.e.select(kept, x, n.e.splatLike(0, x)));
}

LogicalResult importDepthToSpace(NodeContext& n) {
  Val x = n.in(0);
  int64_t block = n.attrInt("blocksize", 0);
  if (x.rank() != 4 || block <= 0)
    return n.error("expected an input of rank 4 and a positive blocksize");
  int64_t batch = x.dim(0), channels = x.dim(1), height = x.dim(2),
          width = x.dim(3);
  if (n.op() == "SpaceToDepth") {
    if (height % block != 0 || width % block != 0)
      return n.error("expected sizes that blocksize divides");
    Val split = n.e.reshape(
        x, {batch, channels, height / block, block, width / block, block});
    Val moved = n.e.transpose(split, {0, 3, 5, 1, 2, 4});
    return n.result(n.e.reshape(moved, {batch, channels * block * block,
                                        height / block, width / block}));
  }
  int64_t depth = channels / (block * block);
  if (depth * block * block != channels)
    return n.error("expected channels that blocksize * blocksize divides");
  bool is_crd = n.attrString("mode", "DCR") == "CRD";
  Val split = is_crd
                  ? n.e.reshape(x, {batch, depth, block, block, height, width})
                  : n.e.reshape(x, {batch, block, block, depth, height, width});
  Val moved = n.e.transpose(
      split, is_crd ? Dims{0, 1, 4, 2, 5, 3} : Dims{0, 3, 4, 1, 5, 2});
  return n.result(
      n.e.reshape(moved, {batch, depth, height * block, width * block}));
}

LogicalResult importCenterCropPad(NodeContext& n) {
  Val x = n.in(0);
  auto sizes = n.constInts(1);
  auto axes = n.axes(n.attrInts("axes", countUp(x.rank())), x.rank());
  if (failed(sizes) || failed(axes)) return failure();
  if (sizes->size() != axes->size())
    return n.error("expected one size per axis");
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t dim = (*axes)[i], added = (*sizes)[i] - x.dim(dim);
    // For an odd difference, the larger half is added or removed at the end.
    low[dim] = added >= 0 ? added / 2 : -(-added / 2);
    high[dim] = added - low[dim];
  }
  return n.result(n.e.pad(x, n.e.splat(0, x.elementType()), low, high));
}

}  // namespace partita::onnx
