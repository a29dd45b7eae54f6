#include "frontends/builder/window.h"

#include <optional>
#include <vector>

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

namespace {

// An element of a window, by its position in the window and the window's
// number.
struct Element {
  int64_t position, window;
};
using Elements = llvm::SmallVector<Element, 1>;

// Upper bound for the indices of takeWindows and sumWindows, which are
// constants.
constexpr int64_t kMaxIndices = int64_t{1} << 22;

void refuseIndices(Emitter& e) {
  e.error("expected windows with at most " + llvm::Twine(kMaxIndices) +
          " elements on one image");
}

// Returns the elements of windows that lie on each place of dimension i.
std::vector<Elements> elementsOnPlaces(const Window& window, size_t i,
                                       int64_t size, int64_t count) {
  std::vector<Elements> places(size);
  for (int64_t position = 0; position < window.kernel[i]; ++position) {
    const int64_t shift = position * window.dilations[i] - window.low[i];
    for (int64_t number = 0; number < count; ++number) {
      const int64_t place = number * window.strides[i] + shift;
      if (place >= 0 && place < size)
        places[place].push_back({position, number});
    }
  }
  return places;
}

// Returns the elements on each place of two dimensions, from those on each
// place of the outer and of the inner one.
std::vector<Elements> combine(const std::vector<Elements>& outer,
                              const std::vector<Elements>& inner,
                              int64_t kernel, int64_t count) {
  std::vector<Elements> places;
  for (const Elements& first : outer)
    for (const Elements& second : inner) {
      Elements& place = places.emplace_back();
      for (const Element& a : first)
        for (const Element& b : second)
          place.push_back(
              {a.position * kernel + b.position, a.window * count + b.window});
    }
  return places;
}

// The sizes of all windows on an image.
struct WindowSizes {
  Shape counts;           // windows along each dimension
  int64_t positions = 1;  // elements of a window
  int64_t windows = 1;
  int64_t cells = 1;  // places of the image
};

std::optional<WindowSizes> sizesOf(Emitter& e, Dims image,
                                   const Window& window) {
  WindowSizes sizes;
  int64_t indices = 1;
  for (size_t i = 0; i < image.size(); ++i) {
    sizes.counts.push_back(
        nn::windowedSize(image[i], window.kernel[i], window.strides[i],
                         window.dilations[i], window.low[i], window.high[i]));
    const int64_t count = std::max<int64_t>(sizes.counts[i], 1);
    if (window.kernel[i] > kMaxIndices || count > kMaxIndices ||
        __builtin_mul_overflow(
            indices, std::max(image[i], window.kernel[i] * count), &indices) ||
        indices > kMaxIndices) {
      refuseIndices(e);
      return std::nullopt;
    }
    sizes.positions *= window.kernel[i];
    sizes.windows *= sizes.counts[i];
    sizes.cells *= image[i];
  }
  return sizes;
}

}  // namespace

Val takeWindows(Emitter& e, Val x, const Window& window) {
  const Dims image = x.shape().drop_front(2);
  const auto sizes = sizesOf(e, image, window);
  if (!sizes) return x;
  // Places of elements, [window position, window], in the padded image.
  Shape places = {0}, low = {0, 0}, high = {0, 0};
  int64_t cells = 1, positions = 1, windows = 1;
  for (size_t i = 0; i < image.size(); ++i) {
    low.push_back(window.low[i]);
    high.push_back(window.high[i]);
    const int64_t size = image[i] + window.low[i] + window.high[i];
    const int64_t kernel = window.kernel[i], count = sizes->counts[i];
    Shape finer;
    for (int64_t position = 0; position < positions * kernel; ++position)
      for (int64_t number = 0; number < windows * count; ++number)
        finer.push_back(places[position / kernel * windows + number / count] *
                            size +
                        position % kernel * window.dilations[i] +
                        number % count * window.strides[i]);
    places = finer;
    positions *= kernel;
    windows *= count;
    if (__builtin_mul_overflow(cells, size, &cells) || cells > kMaxIndices) {
      refuseIndices(e);
      return x;
    }
  }
  const int64_t batch = x.dim(0), channels = x.dim(1);
  Val padded = e.reshape(e.pad(x, e.splat(0, x.elementType()), low, high),
                         {batch, channels, cells});
  const int64_t taken = positions * windows;
  Val found = e.gather(padded, e.ints(places, {taken, 1}), {2});
  return e.reshape(e.transpose(found, {1, 2, 0}),
                   {batch, channels * positions, windows});
}

Val sumWindows(Emitter& e, Val x, Dims image, const Window& window) {
  const auto sizes = sizesOf(e, image, window);
  if (!sizes) return x;
  const auto& [counts, positions, windows, cells] = *sizes;
  if (x.rank() != 3 || x.dim(1) % positions != 0 || x.dim(2) != windows) {
    e.error("expected windows of the shape [N, C * " + llvm::Twine(positions) +
            ", " + llvm::Twine(windows) + "], found " + toString(x.shape()));
    return x;
  }
  const int64_t batch = x.dim(0), channels = x.dim(1) / positions;
  std::vector<Elements> places = {{{0, 0}}};
  for (size_t i = 0; i < image.size(); ++i)
    places = combine(places, elementsOnPlaces(window, i, image[i], counts[i]),
                     window.kernel[i], counts[i]);
  size_t most = 1;
  for (const Elements& place : places) most = std::max(most, place.size());
  if (cells * static_cast<int64_t>(most) > kMaxIndices) {
    refuseIndices(e);
    return x;
  }
  // Places with fewer elements take zeros from behind the windows.
  Shape table;
  for (const Elements& place : places)
    for (size_t i = 0; i < most; ++i)
      table.push_back(i < place.size()
                          ? place[i].position * windows + place[i].window
                          : positions * windows);
  Val columns = e.pad(e.reshape(x, {batch, channels, positions * windows}),
                      e.splat(0, x.elementType()), {0, 0, 0}, {0, 0, 1});
  Val found = e.gather(
      columns, e.ints(table, {cells, static_cast<int64_t>(most), 1}), {2});
  Val sum = e.reduce(ReduceKind::sum, found, {1}, /*keep_dims=*/false);
  Shape shape = {batch, channels};
  shape.append(image.begin(), image.end());
  return e.reshape(e.transpose(sum, {1, 2, 0}), shape);
}

}  // namespace partita::builder
