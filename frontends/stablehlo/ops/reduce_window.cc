// Reductions over windows.
#include <optional>

#include "frontends/builder/padding.h"
#include "frontends/builder/window.h"
#include "frontends/stablehlo/ops/ops.h"
#include "frontends/stablehlo/ops/scalar_function.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

struct Windows {
  Shape sizes, strides, dilations, base, low, high;
};

bool readWindows(OpContext& n, size_t rank, Windows& w) {
  const auto orOnes = [&](llvm::StringRef name) {
    Shape values = n.ints(name);
    if (values.empty()) values.assign(rank, 1);
    return values;
  };
  w.sizes = n.ints("window_dimensions");
  w.strides = orOnes("window_strides");
  w.dilations = orOnes("window_dilations");
  w.base = orOnes("base_dilations");
  Shape padding = n.ints("padding");
  if (n.failed()) return false;
  if (padding.empty()) padding.assign(2 * rank, 0);
  bool fits = padding.size() == 2 * rank;
  for (const Shape* part : {&w.sizes, &w.strides, &w.dilations, &w.base})
    fits = fits && part->size() == rank && builder::isPositive(*part);
  for (size_t i = 0; fits && i < padding.size(); ++i)
    fits = isBelow31Bits(padding[i]);
  if (!fits) {
    n.error("expected a window with an entry per dimension");
    return false;
  }
  for (size_t i = 0; i < rank; ++i) {
    w.low.push_back(padding[2 * i]);
    w.high.push_back(padding[2 * i + 1]);
  }
  return true;
}

// Puts the initial value between elements and around them, as far as `low` and
// `high` say.
Val padded(Emitter& e, Val x, Val init, const Windows& w, Dims low, Dims high) {
  Shape between;
  for (int64_t base : w.base) between.push_back(base - 1);
  return e.pad(builder::spreadApart(e, x, init, between), init, low, high);
}

Val windowsOf(Emitter& e, nn::ReduceKind kind, Val x, Val init, Windows w) {
  const ElementType type = x.elementType();
  const bool is_neutral = isNeutral(e, kind, init);
  const mlir::Type i32 = e.builder().getI32Type();
  Shape none(x.rank(), 0), low = none, high = none;
  if (is_neutral) {
    // nn pads with the neutral element; negative padding crops.
    for (int64_t i = 0; i < x.rank(); ++i) {
      low[i] = std::max<int64_t>(w.low[i], 0);
      high[i] = std::max<int64_t>(w.high[i], 0);
      w.low[i] = std::min<int64_t>(w.low[i], 0);
      w.high[i] = std::min<int64_t>(w.high[i], 0);
    }
  }
  x = padded(e, x, init, w, w.low, w.high);
  if (e.failed()) return x;
  const bool is_bool = x.isBool();
  if (is_bool) x = e.cast(x, i32);
  Val y = e.reduceWindow(kind, x, w.sizes, w.strides, w.dilations, low, high);
  if (e.failed()) return y;
  if (is_bool) y = e.cast(y, type);
  return is_neutral ? y : combine(e, kind, y, init);
}

// Any reducer: a slice of the operands per position in the window.
void windowsByFunction(OpContext& n, Values values, const Values& inits,
                       const Windows& w) {
  constexpr int64_t kMaxWindow = 1024;
  Emitter& e = n.e;
  if (builder::product(w.sizes) > kMaxWindow) {
    n.unsupported("a window of more than " + llvm::Twine(kMaxWindow) +
                  " elements with this function");
    return;
  }
  const ScalarFunction reducer = reducerOf(n, values);
  if (n.failed()) return;
  for (auto [value, init] : llvm::zip(values, inits))
    value = padded(e, value, init, w, w.low, w.high);
  if (n.failed()) return;
  const Shape shape = n.result().shape;
  Shape position(w.sizes.size(), 0);
  Values sums;
  for (Val init : inits) sums.push_back(e.broadcast(init, shape));
  for (int64_t k = 0; k < builder::product(w.sizes); ++k) {
    int64_t left = k;
    bool fits = true;
    for (size_t i = position.size(); i-- > 0; left /= w.sizes[i]) {
      position[i] = left % w.sizes[i] * w.dilations[i];
      fits = fits && shape.size() == w.sizes.size() &&
             (shape[i] == 0 || position[i] + (shape[i] - 1) * w.strides[i] <
                                   values[0].dim(static_cast<int64_t>(i)));
    }
    if (!fits) {
      n.error("expected a result with an entry per window");
      return;
    }
    Values elements;
    for (Val value : values)
      elements.push_back(e.slice(value, position, shape, w.strides));
    sums = reduceTwo(reducer, sums, elements);
    if (n.failed()) return;
    if (sums.size() != values.size()) {
      n.error("expected " + llvm::Twine(values.size()) +
              " results of the reducer, one per operand, found " +
              llvm::Twine(sums.size()));
      return;
    }
  }
  n.outAll(sums);
}

}  // namespace

Val importReduceWindow(OpContext& n) {
  Values inputs, inits;
  Windows w;
  if (!takeReduced(n, inputs, inits) || !readWindows(n, inputs[0].rank(), w))
    return {};
  if (inputs.size() == 1)
    if (const auto kind = reduceKindOf(n.onlyOperation(0), inputs[0]))
      return windowsOf(n.e, *kind, inputs[0], inits[0], w);
  windowsByFunction(n, inputs, inits, w);
  return {};
}

}  // namespace partita::stablehlo
