// Convolutions and pooling.
#include "frontends/onnx/ops/ops.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {
namespace {

using nn::ReduceKind;

// The window of a convolution or pooling, one entry per spatial dimension.
struct Window {
  Shape kernel, strides, dilations, low, high;
};

bool isPositive(Dims values) {
  return llvm::all_of(values, [](int64_t value) {
    return value > 0 && value < (int64_t{1} << 31);
  });
}

// Padding that gives ceil(size / stride) windows.
void padSame(Window& window, Dims spatial, bool is_upper) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
    int64_t count = (spatial[i] + window.strides[i] - 1) / window.strides[i];
    int64_t total = std::max<int64_t>(
        (count - 1) * window.strides[i] + extent - spatial[i], 0);
    window.low[i] = is_upper ? total / 2 : total - total / 2;
    window.high[i] = total - window.low[i];
  }
}

// Reads kernel, strides, dilations, pads and auto_pad. `kernel` is the weight's
// kernel shape, or empty without a weight.
FailureOr<Window> readWindow(NodeContext& n, Val x, Dims kernel) {
  if (x.rank() < 3 || x.rank() > 5)
    return n.unsupported("rank " + std::to_string(x.rank()));
  Dims spatial = x.shape().drop_front(2);
  Shape ones(spatial.size(), 1), zeros(2 * spatial.size(), 0);
  Window window;
  window.kernel = n.attrInts("kernel_shape", kernel);
  window.strides = n.attrInts("strides", ones);
  window.dilations = n.attrInts("dilations", ones);
  Shape pads = n.attrInts("pads", zeros);
  if (window.kernel.size() != spatial.size() ||
      window.strides.size() != spatial.size() ||
      window.dilations.size() != spatial.size() ||
      pads.size() != 2 * spatial.size()) {
    return n.error(
        "expected kernel_shape, strides, dilations and pads to fit " +
        llvm::Twine(spatial.size()) + " spatial dimensions");
  }
  if (!isPositive(window.kernel) || !isPositive(window.strides) ||
      !isPositive(window.dilations)) {
    return n.error("expected a positive kernel_shape, strides and dilations");
  }
  window.low.assign(pads.begin(), pads.begin() + spatial.size());
  window.high.assign(pads.begin() + spatial.size(), pads.end());
  std::string auto_pad = n.attrString("auto_pad", "NOTSET");
  if (auto_pad == "VALID") {
    window.low.assign(spatial.size(), 0);
    window.high.assign(spatial.size(), 0);
  } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    padSame(window, spatial, auto_pad == "SAME_UPPER");
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    return n.error("expected auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  return window;
}

// Extra padding at the end that completes the last window, unless that window
// would begin beyond the input.
Shape ceilPadding(const Window& window, Dims spatial) {
  Shape extra;
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
    int64_t span = window.low[i] + spatial[i] + window.high[i] - extent;
    int64_t left = span < 0 ? 0 : span % window.strides[i];
    int64_t last = span - left + window.strides[i];
    bool adds = span >= 0 && left != 0 && last < window.low[i] + spatial[i];
    extra.push_back(adds ? window.strides[i] - left : 0);
  }
  return extra;
}

// A window over only the spatial dimensions.
Val slide(Emitter& e, ReduceKind kind, Val x, const Window& window, Dims low,
          Dims high) {
  auto full = [&](Dims values, int64_t outer) {
    Shape result = {outer, outer};
    result.append(values.begin(), values.end());
    return result;
  };
  return e.reduceWindow(kind, x, full(window.kernel, 1),
                        full(window.strides, 1), full(window.dilations, 1),
                        full(low, 0), full(high, 0));
}

Shape plus(Dims a, Dims b) {
  Shape result(a);
  for (size_t i = 0; i < b.size(); ++i) result[i] += b[i];
  return result;
}

Val addBias(NodeContext& n, Val y, unsigned input) {
  if (!n.has(input)) return y;
  Val bias = n.in(input);
  if (bias.rank() != 1 || bias.dim(0) != y.dim(1)) {
    n.error("expected a bias with one entry per channel").failed();
    return y;
  }
  return n.e.add(y, n.e.broadcastDims(bias, y.shape(), {1}));
}

mlir::Value conv(Emitter& e, Val x, Val weight, const Window& window,
                 int64_t groups) {
  Shape shape = {x.dim(0), weight.dim(0)};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    shape.push_back(nn::windowedSize(x.dim(i + 2), weight.dim(i + 2),
                                     window.strides[i], window.dilations[i],
                                     window.low[i], window.high[i]));
  }
  return e.create<nn::ConvOp>(e.tensor(shape, x.element()), x.value,
                              weight.value, window.strides, window.dilations,
                              window.low, window.high, groups,
                              /*channels_last=*/false);
}

// Number of elements under each window. Explicit padding counts if
// `include_pad` is set.
Val windowCounts(Emitter& e, Val x, const Window& window, Dims extra,
                 bool include_pad) {
  Shape shape = {1, 1}, ones = {1, 1};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    shape.push_back(x.dim(i + 2) +
                    (include_pad ? window.low[i] + window.high[i] : 0));
  }
  Val cells = e.splat(1, x.elementType(), shape);
  Shape none(window.kernel.size(), 0);
  return include_pad ? slide(e, ReduceKind::sum, cells, window, none, extra)
                     : slide(e, ReduceKind::sum, cells, window, window.low,
                             plus(window.high, extra));
}

}  // namespace

LogicalResult importConv(NodeContext& n) {
  Val x = n.in(0), weight = n.in(1);
  if (!x.isFloat()) return n.error("expected floats");
  if (weight.rank() != x.rank() || weight.rank() < 3)
    return n.error("expected a weight of the input's rank");
  auto window = readWindow(n, x, weight.shape().drop_front(2));
  if (failed(window)) return failure();
  if (Dims(window->kernel) != weight.shape().drop_front(2))
    return n.error("expected kernel_shape to be the weight's");
  Val y = {conv(n.e, x, weight, *window, n.attrInt("group", 1))};
  return n.result(addBias(n, y, 2));
}

// A transposed convolution is a convolution of the input, with zeros between
// its elements, by the flipped kernel.
LogicalResult importConvTranspose(NodeContext& n) {
  Val x = n.in(0), weight = n.in(1);
  if (weight.rank() != x.rank() || weight.rank() < 3)
    return n.error("expected a weight of the input's rank");
  auto given = readWindow(n, x, weight.shape().drop_front(2));
  if (failed(given)) return failure();
  int64_t groups = n.attrInt("group", 1), spatial = x.rank() - 2;
  if (groups < 1 || weight.dim(0) % groups != 0)
    return n.error("expected group to divide the channels");
  Shape output_padding = n.attrInts("output_padding", Shape(spatial, 0));
  Shape output_shape = n.attrInts("output_shape");
  std::string auto_pad = n.attrString("auto_pad", "NOTSET");
  bool is_same = llvm::StringRef(auto_pad).starts_with("SAME");
  if (static_cast<int64_t>(output_padding.size()) != spatial ||
      (!output_shape.empty() &&
       static_cast<int64_t>(output_shape.size()) != spatial)) {
    return n.error(
        "expected output_padding and output_shape to have one entry per "
        "spatial dimension");
  }
  Emitter& e = n.e;
  Window window = *given;
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t size = x.dim(i + 2), stride = window.strides[i],
            reach = window.dilations[i] * (window.kernel[i] - 1);
    if (is_same || !output_shape.empty()) {
      int64_t wanted = output_shape.empty() ? size * stride : output_shape[i];
      int64_t total =
          stride * (size - 1) + output_padding[i] + reach + 1 - wanted;
      // Floor division, also for negative totals, for which the output grows.
      int64_t half = llvm::divideFloorSigned(total, 2);
      window.low[i] = auto_pad == "SAME_UPPER" ? half : total - half;
      window.high[i] = total - window.low[i];
    }
    low[i + 2] = reach - window.low[i];
    high[i + 2] = reach - window.high[i] + output_padding[i];
    if (stride > 1) {
      // Inserts zeros after each element but the last.
      Shape split(x.shape()), zeros(x.rank() + 1, 0), joined(x.shape());
      split.insert(split.begin() + i + 3, 1);
      Shape added = zeros;
      added[i + 3] = stride - 1;
      joined[i + 2] = size * stride;
      x = e.reshape(
          e.pad(e.reshape(x, split), e.splat(0, x.elementType()), zeros, added),
          joined);
      x = e.sliceDim(x, i + 2, 0,
                     std::max<int64_t>((size - 1) * stride + 1, 0));
    }
  }
  x = e.pad(x, e.splat(0, x.elementType()), low, high);
  // Converts [C, M / g, kernel] to [M, C / g, kernel], flipped.
  int64_t in = weight.dim(0) / groups, out = weight.dim(1);
  Shape grouped = {groups, in, out}, final_shape = {groups * out, in},
        perm = countUp(weight.rank() + 1);
  llvm::append_range(grouped, window.kernel);
  llvm::append_range(final_shape, window.kernel);
  std::swap(perm[1], perm[2]);
  Val flipped = weight;
  for (int64_t i = 0; i < spatial; ++i) flipped = e.reverse(flipped, i + 2);
  flipped =
      e.reshape(e.transpose(e.reshape(flipped, grouped), perm), final_shape);
  window.strides.assign(spatial, 1);
  window.low.assign(spatial, 0);
  window.high.assign(spatial, 0);
  return n.result(addBias(n, {conv(e, x, flipped, window, groups)}, 2));
}

LogicalResult importMaxPool(NodeContext& n) {
  Val x = n.in(0);
  auto window = readWindow(n, x, {});
  if (failed(window)) return failure();
  if (n.wants(1)) return n.unsupported("Indices");
  Shape extra(window->kernel.size(), 0);
  if (n.attrInt("ceil_mode", 0))
    extra = ceilPadding(*window, x.shape().drop_front(2));
  return n.result(slide(n.e, ReduceKind::max, x, *window, window->low,
                        plus(window->high, extra)));
}

LogicalResult importAveragePool(NodeContext& n) {
  Val x = n.in(0);
  auto window = readWindow(n, x, {});
  if (failed(window)) return failure();
  Shape extra(window->kernel.size(), 0);
  if (n.attrInt("ceil_mode", 0))
    extra = ceilPadding(*window, x.shape().drop_front(2));
  Val sum = slide(n.e, ReduceKind::sum, x, *window, window->low,
                  plus(window->high, extra));
  Val counts =
      windowCounts(n.e, x, *window, extra, n.attrInt("count_include_pad", 0));
  return n.result(n.e.div(sum, counts));
}

LogicalResult importLpPool(NodeContext& n) {
  Val x = n.in(0);
  auto window = readWindow(n, x, {});
  if (failed(window)) return failure();
  Shape extra(window->kernel.size(), 0);
  if (n.attrInt("ceil_mode", 0))
    extra = ceilPadding(*window, x.shape().drop_front(2));
  Val p = n.e.splat(static_cast<double>(n.attrInt("p", 2)), x.elementType());
  Val powers = n.e.binary<mlir::math::PowFOp>(n.e.abs(x), p);
  Val sum = slide(n.e, ReduceKind::sum, powers, *window, window->low,
                  plus(window->high, extra));
  return n.result(n.e.binary<mlir::math::PowFOp>(
      sum, n.e.div(n.e.splat(1, x.elementType()), p)));
}

LogicalResult importGlobalPool(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() < 3) return n.error("expected an input of rank 3 or more");
  Shape dims = countUp(x.rank());
  dims.erase(dims.begin(), dims.begin() + 2);
  if (n.op() == "GlobalAveragePool") return n.result(n.e.mean(x, dims, true));
  if (n.op() == "GlobalMaxPool")
    return n.result(n.e.reduce(ReduceKind::max, x, dims, true));
  Val p = n.e.splat(static_cast<double>(n.attrInt("p", 2)), x.elementType());
  Val sum =
      n.e.reduce(ReduceKind::sum, n.e.binary<mlir::math::PowFOp>(n.e.abs(x), p),
                 dims, true);
  return n.result(n.e.binary<mlir::math::PowFOp>(
      sum, n.e.div(n.e.splat(1, x.elementType()), p)));
}

}  // namespace partita::onnx
