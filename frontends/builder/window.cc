#include "frontends/builder/window.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::builder {

using nn::ReduceKind;

bool isPositive(Dims values) {
  return llvm::all_of(values, [](int64_t value) {
    return value > 0 && value < (int64_t{1} << 31);
  });
}

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

Val addChannelBias(Emitter& e, Val y, Val bias) {
  if (bias.rank() != 1 || bias.dim(0) != y.dim(1)) {
    e.error("expected a bias with one entry per channel");
    return y;
  }
  return e.add(y, e.broadcastDims(bias, y.shape(), {1}));
}

Val convolve(Emitter& e, Val x, Val weight, const Window& window,
             int64_t groups) {
  Shape shape = {x.dim(0), weight.dim(0)};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    shape.push_back(nn::windowedSize(x.dim(i + 2), weight.dim(i + 2),
                                     window.strides[i], window.dilations[i],
                                     window.low[i], window.high[i]));
  }
  return {e.create<nn::ConvOp>(e.tensor(shape, x.element()), x.value,
                               weight.value, window.strides, window.dilations,
                               window.low, window.high, groups,
                               /*channels_last=*/false)};
}

Val convolveTransposed(Emitter& e, Val x, Val weight, Window window,
                       Dims output_padding, int64_t groups) {
  int64_t spatial = x.rank() - 2;
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t size = x.dim(i + 2), stride = window.strides[i],
            reach = window.dilations[i] * (window.kernel[i] - 1);
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
  return convolve(e, x, flipped, window, groups);
}

namespace {

bool checkColumns(Emitter& e, const Window& window) {
  constexpr uint64_t kMaxElements = 1024;
  const std::optional<uint64_t> count = elementCount(window.kernel);
  if (count && *count <= kMaxElements) return true;
  e.error("expected windows of at most 1024 elements");
  return false;
}

// A kernel per channel and element of a window, which picks that element:
// [channels * elements, 1, kernel...].
Val pickingKernels(Emitter& e, int64_t channels, const Window& window,
                   mlir::Type element) {
  const int64_t count = product(window.kernel);
  std::vector<double> values(count * count, 0.0);
  for (int64_t i = 0; i < count; ++i) values[i * (count + 1)] = 1;
  Val one = e.reals(values, {count, count}, element);
  Shape shape = {channels * count, 1};
  llvm::append_range(shape, window.kernel);
  return e.reshape(e.broadcastDims(one, {channels, count, count}, {1, 2}),
                   shape);
}

}  // namespace

Val unfold(Emitter& e, Val x, const Window& window) {
  if (!checkColumns(e, window)) return {};
  const Val y = convolve(e, x, pickingKernels(e, x.dim(1), window, x.element()),
                         window, x.dim(1));
  if (e.failed()) return y;
  return e.reshape(y, {y.dim(0), y.dim(1), product(y.shape().drop_front(2))});
}

Val fold(Emitter& e, Val columns, const Window& window, Dims sizes) {
  if (!checkColumns(e, window)) return {};
  const int64_t channels = columns.dim(1) / product(window.kernel);
  Shape places = {columns.dim(0), columns.dim(1)}, left;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1,
                  span = sizes[i] + window.low[i] + window.high[i] - extent;
    places.push_back(span < 0 ? 0 : span / window.strides[i] + 1);
    left.push_back(span < 0 ? 0 : span % window.strides[i]);
  }
  if (channels * product(window.kernel) != columns.dim(1) ||
      elementCount(Dims(places).drop_front(2)) !=
          static_cast<uint64_t>(columns.dim(2))) {
    e.error(
        "expected rows for each channel and element of a window, and a column "
        "for each window");
    return {};
  }
  return convolveTransposed(
      e, e.reshape(columns, places),
      pickingKernels(e, channels, window, columns.element()), window, left,
      channels);
}

namespace {

// Number of elements under each window.
Val windowCounts(Emitter& e, Val x, const Window& window, Dims extra,
                 bool include_pad) {
  Shape shape = {1, 1};
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

Val averagePool(Emitter& e, Val x, const Window& window, Dims extra,
                bool include_pad) {
  Val sum = slide(e, ReduceKind::sum, x, window, window.low,
                  plus(window.high, extra));
  return e.div(sum, windowCounts(e, x, window, extra, include_pad));
}

}  // namespace partita::builder
