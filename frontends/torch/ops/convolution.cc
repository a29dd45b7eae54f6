// Convolutions and pooling.
#include "frontends/builder/window.h"
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

using builder::Window;

// One entry per spatial dimension from a list with one or all of them.
Shape perDim(NodeContext& n, llvm::StringRef name, int64_t count,
             int64_t absent) {
  Shape values = n.ints(name, Shape());
  if (values.empty()) values.assign(count, absent);
  if (values.size() == 1) values.assign(count, values.front());
  if (static_cast<int64_t>(values.size()) != count && !n.failed())
    n.error("expected " + llvm::Twine(count) + " entries of '" + name + "'");
  return n.failed() ? Shape(count, 1) : values;
}

// Reads the window of [N, C, spatial...]; `kernel` is the kernel's shape.
Window readWindow(NodeContext& n, Val x, Dims kernel) {
  const int64_t count = x.rank() - 2;
  Window window;
  window.kernel = Shape(kernel);
  window.strides = perDim(n, "stride", count, 1);
  window.dilations = perDim(n, "dilation", count, 1);
  const bool is_same =
      n.overload == "padding" && n.text("padding", "valid") == "same";
  Shape padding(count, 0);
  if (n.overload != "padding") padding = perDim(n, "padding", count, 0);
  window.low = window.high = padding;
  constexpr int64_t kMaxPadding = int64_t{1} << 31;
  const bool fits = llvm::all_of(
      padding, [](int64_t pad) { return pad >= 0 && pad < kMaxPadding; });
  if (!n.failed() && (!builder::isPositive(kernel) || !fits ||
                      !builder::isPositive(window.strides) ||
                      !builder::isPositive(window.dilations)))
    n.error(
        "expected positive kernels, strides and dilations, and paddings "
        "that are not negative");
  if (n.failed() || !is_same) return window;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t total = window.dilations[i] * (kernel[i] - 1);
    window.low[i] = total / 2;
    window.high[i] = total - total / 2;
  }
  return window;
}

bool checkRank(NodeContext& n, Val x) {
  if (n.failed()) return false;
  if (x.rank() >= 3 && x.rank() <= 5 && x.isFloat()) return true;
  n.error(
      "expected floats of shape [batch, channels, spatial...], found rank " +
      llvm::Twine(x.rank()));
  return false;
}

// Pooling of one, two or three dimensions; inputs without a batch are refused.
bool checkPool(NodeContext& n, Val x) {
  if (!checkRank(n, x)) return false;
  const int64_t spatial = n.op.contains("1d") ? 1 : n.op.contains("2d") ? 2 : 3;
  if (x.rank() == spatial + 2) return true;
  n.unsupported("an input without a batch");
  return false;
}

Window readPool(NodeContext& n, Val x) {
  const int64_t count = x.rank() - 2;
  const Shape kernel = perDim(n, "kernel_size", count, 1);
  Window window = readWindow(n, x, kernel);
  // Without a stride, windows do not overlap.
  if (n.ints("stride", Shape()).empty()) window.strides = kernel;
  return window;
}

Val addBias(NodeContext& n, Val y) {
  Val bias = n.optionalTensor("bias");
  return bias && !n.failed() ? builder::addChannelBias(n.e, y, bias) : y;
}

}  // namespace

Val importConv(NodeContext& n) {
  if (n.op == "aten.convolution" && n.flag("transposed", false))
    return importConvTranspose(n);
  Val x = n.tensor("input"), weight = n.tensor("weight");
  const int64_t groups = n.integer("groups", 1);
  if (!checkRank(n, x)) return {};
  if (weight.rank() != x.rank())
    return n.error("expected a weight of the input's rank");
  const Window window = readWindow(n, x, weight.shape().drop_front(2));
  if (n.failed()) return {};
  return addBias(n, builder::convolve(n.e, x, weight, window, groups));
}

Val importConvTranspose(NodeContext& n) {
  Val x = n.tensor("input"), weight = n.tensor("weight");
  const int64_t groups = n.integer("groups", 1);
  if (!checkRank(n, x)) return {};
  if (weight.rank() != x.rank() || groups < 1 || weight.dim(0) % groups != 0)
    return n.error(
        "expected a weight of the input's rank, and groups that "
        "divide its channels");
  const Window window = readWindow(n, x, weight.shape().drop_front(2));
  const Shape output_padding = perDim(n, "output_padding", x.rank() - 2, 0);
  if (n.failed()) return {};
  for (auto [more, stride, dilation] :
       llvm::zip_equal(output_padding, window.strides, window.dilations))
    if (more < 0 || more >= std::max(stride, dilation))
      return n.error(
          "expected an output_padding below stride or dilation, found " +
          llvm::Twine(more));
  return addBias(n, builder::convolveTransposed(n.e, x, weight, window,
                                                output_padding, groups));
}

Val importIm2Col(NodeContext& n) {
  Val x = n.tensor("self");
  if (!checkRank(n, x)) return {};
  if (x.rank() != 4) return n.unsupported("an input without a batch");
  const Window window = readWindow(n, x, perDim(n, "kernel_size", 2, 1));
  return n.failed() ? Val() : builder::takeWindows(n.e, x, window);
}

Val importCol2Im(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  if (x.rank() != 3) return n.unsupported("an input without a batch");
  const Shape image = perDim(n, "output_size", 2, 1);
  Window window;
  window.kernel = perDim(n, "kernel_size", 2, 1);
  window.strides = perDim(n, "stride", 2, 1);
  window.dilations = perDim(n, "dilation", 2, 1);
  window.low = window.high = perDim(n, "padding", 2, 0);
  if (n.failed()) return {};
  if (!builder::isPositive(image) || !builder::isPositive(window.kernel) ||
      !builder::isPositive(window.strides) ||
      !builder::isPositive(window.dilations) ||
      llvm::any_of(window.low, [](int64_t pad) {
        return pad < 0 || pad >= int64_t{1} << 31;
      }))
    return n.error(
        "expected positive sizes, kernels, strides and dilations, and "
        "paddings that are not negative");
  return builder::sumWindows(n.e, x, image, window);
}

Val importMaxPool(NodeContext& n) {
  Val x = n.tensor("self");
  if (!checkPool(n, x)) return {};
  const Window window = readPool(n, x);
  const bool ceils = n.flag("ceil_mode", false);
  if (n.failed()) return {};
  Shape extra(window.kernel.size(), 0);
  if (ceils) extra = builder::ceilPadding(window, x.shape().drop_front(2));
  return builder::slide(n.e, nn::ReduceKind::max, x, window, window.low,
                        builder::plus(window.high, extra));
}

Val importAvgPool(NodeContext& n) {
  Val x = n.tensor("self");
  if (!checkPool(n, x)) return {};
  const Window window = readPool(n, x);
  const bool ceils = n.flag("ceil_mode", false);
  if (n.failed()) return {};
  if (n.has("divisor_override")) return n.unsupported("divisor_override");
  Shape extra(window.kernel.size(), 0);
  if (ceils) extra = builder::ceilPadding(window, x.shape().drop_front(2));
  return builder::averagePool(n.e, x, window, extra,
                              n.flag("count_include_pad", true));
}

namespace {

// Averages along a dimension over `count` windows of about equal sizes, which
// overlap if they must: window i has the elements from floor(i * size / count)
// to ceil((i + 1) * size / count).
Val averageAlong(Emitter& e, Val x, int64_t dim, int64_t count) {
  const int64_t size = x.dim(dim);
  std::vector<double> shares(count * size, 0.0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count,
                  end = ((i + 1) * size + count - 1) / count;
    for (int64_t j = begin; j < end; ++j)
      shares[i * size + j] = 1.0 / static_cast<double>(end - begin);
  }
  Val y =
      e.dot(x, e.reals(shares, {count, size}, x.element()), {}, {}, {dim}, {1});
  // The product's dimension of windows is the last one.
  Shape perm = countUp(x.rank() - 1);
  perm.insert(perm.begin() + dim, x.rank() - 1);
  return e.transpose(y, perm);
}

}  // namespace

Val importAdaptivePool(NodeContext& n) {
  Val x = n.tensor("self");
  if (!checkPool(n, x)) return {};
  const int64_t count = x.rank() - 2;
  const Shape sizes = perDim(n, "output_size", count, 1);
  if (n.failed()) return {};
  Window window;
  Shape dims;
  bool divides = true;
  for (int64_t i = 0; i < count; ++i) {
    constexpr int64_t kMaxShares = 1 << 20;
    const int64_t size = x.dim(i + 2);
    if (sizes[i] < 1 || size < 1 || sizes[i] > kMaxShares / size)
      return n.error("expected positive sizes with a product of at most 2^20");
    divides &= size % sizes[i] == 0;
    window.kernel.push_back(size / sizes[i]);
    dims.push_back(i + 2);
  }
  if (llvm::all_of(sizes, [](int64_t size) { return size == 1; }))
    return n.e.mean(x, dims, true);
  if (!divides) {
    for (int64_t i = 0; i < count; ++i)
      x = averageAlong(n.e, x, i + 2, sizes[i]);
    return x;
  }
  window.strides = window.kernel;
  window.dilations.assign(count, 1);
  window.low.assign(count, 0);
  window.high = window.low;
  return builder::averagePool(n.e, x, window, Shape(count, 0), false);
}

}  // namespace partita::torch
