// Reductions over dimensions and windows.
#include <optional>

#include "frontends/builder/padding.h"
#include "frontends/builder/window.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::stablehlo {

using nn::ReduceKind;

std::optional<ReduceKind> reduceKindOf(llvm::StringRef operation, Val x) {
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(operation)
                  .Case("add", ReduceKind::sum)
                  .Case("multiply", ReduceKind::prod)
                  .Case("maximum", ReduceKind::max)
                  .Case("minimum", ReduceKind::min)
                  .Default(std::nullopt);
  if (!x.isBool()) return kind;
  if (operation == "or" || operation == "add") return ReduceKind::max;
  if (operation == "and" || operation == "multiply") return ReduceKind::min;
  return kind;
}

namespace {

bool isNeutral(Emitter& e, ReduceKind kind, Val init) {
  const auto found = init.constant();
  const auto expected = e.neutral(kind, init.elementType()).constant();
  if (!found || !found.isSplat()) return false;
  if (found.getSplatValue<mlir::Attribute>() ==
      expected.getSplatValue<mlir::Attribute>())
    return true;
  // -0 is neutral for sums, too.
  return init.isFloat() && kind == ReduceKind::sum &&
         found.getSplatValue<llvm::APFloat>().isZero();
}

Val combine(Emitter& e, ReduceKind kind, Val a, Val b) {
  switch (kind) {
    case ReduceKind::sum:
      return e.add(a, b);
    case ReduceKind::prod:
      return e.mul(a, b);
    case ReduceKind::max:
      return e.maximum(a, b);
    case ReduceKind::min:
      return e.minimum(a, b);
  }
  return {};
}

// Operands 0..k-1 are reduced; k..2k-1 are their initial values.
bool takeOperands(OpContext& n, Values& inputs, Values& inits) {
  const Values all = n.all();
  if (n.failed()) return false;
  const size_t half = all.size() / 2;
  inputs.assign(all.begin(), all.begin() + half);
  inits.assign(all.begin() + half, all.end());
  bool fits = half > 0 && all.size() % 2 == 0;
  for (size_t i = 0; fits && i < half; ++i)
    fits = inits[i].rank() == 0 && inputs[i].shape() == inputs[0].shape() &&
           inits[i].elementType() == inputs[i].elementType();
  if (!fits) n.error("expected operands of one shape, and a scalar for each");
  return fits;
}

Val reduceOne(OpContext& n, ReduceKind kind, Val x, Val init, Dims dims) {
  const bool is_bool = x.isBool();
  const bool is_neutral = isNeutral(n.e, kind, init);
  const mlir::Type i32 = n.e.builder().getI32Type();
  Val y = n.e.reduce(kind, is_bool ? n.e.cast(x, i32) : x, dims,
                     /*keep_dims=*/false);
  if (is_bool) y = n.e.cast(y, x.elementType());
  return is_neutral ? y : combine(n.e, kind, y, init);
}

}  // namespace

Val importReduce(OpContext& n) {
  Values inputs, inits;
  if (!takeOperands(n, inputs, inits)) return {};
  const Shape dims = n.dimensions("dimensions", inputs[0].rank());
  if (n.failed()) return {};
  if (inputs.size() == 1) {
    if (const auto kind = reduceKindOf(n.onlyOperation(0), inputs[0]))
      return reduceOne(n, *kind, inputs[0], inits[0], dims);
    return n.unsupported(
        "a reduction by another function than add, multiply, maximum, minimum, "
        "and, or");
  }
  if (inputs.size() == 2 && dims.size() == 1 && importArgReduction(n, dims[0]))
    return {};
  if (!n.failed())
    n.unsupported(
        "a reduction of several operands other than argmax and argmin");
  return {};
}

Val importReduceWindow(OpContext& n) {
  Values inputs, inits;
  if (!takeOperands(n, inputs, inits)) return {};
  Val x = inputs[0];
  const size_t rank = x.rank();
  const auto orDefault = [&](llvm::StringRef name, int64_t value) {
    Shape values = n.ints(name);
    if (values.empty()) values.assign(rank, value);
    return values;
  };
  const Shape window = n.ints("window_dimensions"),
              strides = orDefault("window_strides", 1),
              dilations = orDefault("window_dilations", 1),
              base = orDefault("base_dilations", 1);
  Shape padding = n.ints("padding");
  if (n.failed()) return {};
  if (padding.empty()) padding.assign(2 * rank, 0);
  if (inputs.size() != 1)
    return n.unsupported("a window over several operands");
  bool fits = window.size() == rank && strides.size() == rank &&
              dilations.size() == rank && base.size() == rank &&
              padding.size() == 2 * rank && builder::isPositive(window) &&
              builder::isPositive(strides) && builder::isPositive(dilations) &&
              builder::isPositive(base);
  for (size_t i = 0; fits && i < padding.size(); ++i)
    fits = isBelow31Bits(padding[i]);
  if (!fits) return n.error("expected a window with an entry per dimension");
  const auto kind = reduceKindOf(n.onlyOperation(0), x);
  if (!kind || x.isBool()) return n.unsupported("a window with this function");
  if (!isNeutral(n.e, *kind, inits[0]))
    return n.unsupported("an initial value that changes the result");
  Shape between, low, high, crop_low, crop_high;
  for (size_t i = 0; i < rank; ++i) {
    between.push_back(base[i] - 1);
    crop_low.push_back(std::min<int64_t>(padding[2 * i], 0));
    crop_high.push_back(std::min<int64_t>(padding[2 * i + 1], 0));
    low.push_back(std::max<int64_t>(padding[2 * i], 0));
    high.push_back(std::max<int64_t>(padding[2 * i + 1], 0));
  }
  x = n.e.pad(builder::spreadApart(n.e, x, inits[0], between), inits[0],
              crop_low, crop_high);
  if (n.failed()) return {};
  return n.e.reduceWindow(*kind, x, window, strides, dilations, low, high);
}

}  // namespace partita::stablehlo
