// Convolutions and pooling.
#include "frontends/builder/window.h"
#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {
namespace {

using builder::ceilPadding;
using builder::isPositive;
using builder::plus;
using builder::slide;
using builder::Window;
using nn::ReduceKind;

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

Val addBias(NodeContext& n, Val y, unsigned input) {
  if (!n.has(input)) return y;
  return builder::addChannelBias(n.e, y, n.in(input));
}

}  // namespace

FailureOr<Val> convolution(NodeContext& n, Val x, Val weight) {
  if (weight.rank() != x.rank() || weight.rank() < 3)
    return n.error("expected a weight of the input's rank");
  auto window = readWindow(n, x, weight.shape().drop_front(2));
  if (failed(window)) return failure();
  if (Dims(window->kernel) != weight.shape().drop_front(2))
    return n.error("expected kernel_shape to be the weight's");
  return builder::convolve(n.e, x, weight, *window, n.attrInt("group", 1));
}

LogicalResult importConv(NodeContext& n) {
  if (!n.in(0).isFloat()) return n.error("expected floats");
  auto y = convolution(n, n.in(0), n.in(1));
  return failed(y) ? failure() : n.result(addBias(n, *y, 2));
}

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
  Window window = *given;
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
  }
  Val y = builder::convolveTransposed(n.e, x, weight, window, output_padding,
                                      groups);
  return n.result(addBias(n, y, 2));
}

LogicalResult importCol2Im(NodeContext& n) {
  auto image = n.constInts(1), kernel = n.constInts(2);
  if (failed(image) || failed(kernel)) return failure();
  const size_t spatial = image->size();
  Window window;
  window.kernel = *kernel;
  window.strides = n.attrInts("strides", Shape(spatial, 1));
  window.dilations = n.attrInts("dilations", Shape(spatial, 1));
  Shape pads = n.attrInts("pads", Shape(2 * spatial, 0));
  if (spatial == 0 || kernel->size() != spatial ||
      window.strides.size() != spatial || window.dilations.size() != spatial ||
      pads.size() != 2 * spatial)
    return n.error(
        "expected block_shape, strides, dilations and pads to fit the "
        "dimensions of image_shape");
  if (!isPositive(*image) || !isPositive(window.kernel) ||
      !isPositive(window.strides) || !isPositive(window.dilations) ||
      llvm::any_of(pads, [](int64_t pad) {
        return pad < 0 || pad >= (int64_t{1} << 31);
      }))
    return n.error(
        "expected a positive image_shape, block_shape, strides and dilations, "
        "and pads that are not negative");
  window.low.assign(pads.begin(), pads.begin() + spatial);
  window.high.assign(pads.begin() + spatial, pads.end());
  return n.result(builder::sumWindows(n.e, n.in(0), *image, window));
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
  return n.result(builder::averagePool(n.e, x, *window, extra,
                                       n.attrInt("count_include_pad", 0)));
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
