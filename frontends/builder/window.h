// Convolutions and pooling over the spatial dimensions of [N, C, spatial...].
#ifndef PARTITA_FRONTENDS_BUILDER_WINDOW_H_
#define PARTITA_FRONTENDS_BUILDER_WINDOW_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// The window of a convolution or pooling, one entry per spatial dimension.
struct Window {
  Shape kernel, strides, dilations, low, high;
};

// True if all values are positive and below 2^31.
bool isPositive(Dims values);

// Extra padding at the end that completes the last window, unless that window
// would begin beyond the input.
Shape ceilPadding(const Window& window, Dims spatial);

// Reduces each window; `low` and `high` replace the window's padding.
Val slide(Emitter& e, nn::ReduceKind kind, Val x, const Window& window,
          Dims low, Dims high);

// a + b, entry by entry.
Shape plus(Dims a, Dims b);

Val convolve(Emitter& e, Val x, Val weight, const Window& window,
             int64_t groups);

// A transposed convolution: a convolution of the input, with zeros between its
// elements, by the flipped kernel. `weight` is [C, M / groups, kernel...] with
// `groups` dividing C.
Val convolveTransposed(Emitter& e, Val x, Val weight, Window window,
                       Dims output_padding, int64_t groups);

// The elements under each window of x as columns: [N, C * elements of a window,
// windows]. `fold` adds such columns up to a tensor with these spatial sizes.
// Windows have up to 1,024 elements.
Val unfold(Emitter& e, Val x, const Window& window);
Val fold(Emitter& e, Val columns, const Window& window, Dims sizes);

// Adds a vector with one entry per channel. Reports an error if it has another
// size.
Val addChannelBias(Emitter& e, Val y, Val bias);

// Averages of windows. `extra` is padding of ceilPadding, which never counts.
// Explicit padding counts if `include_pad` is set.
Val averagePool(Emitter& e, Val x, const Window& window, Dims extra,
                bool include_pad);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_WINDOW_H_
