// Gradients of pooling: each window's chosen element gets the window's entry of
// the source.
#include <optional>

#include "frontends/builder/padding.h"
#include "frontends/builder/window.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// Maximum number of elements of a window: each is a slice of the operand.
constexpr int64_t kMaxWindow = 1024;

// The comparison by which the region keeps its first argument: one of >=, >,
// <= and <. Nothing for another region.
std::optional<Compare> selectionOf(OpContext& n) {
  if (n.onlyOperation(0) != "compare") return std::nullopt;
  mlir::Block& block = n.op.getRegion(0).front();
  mlir::Operation& compare = block.front();
  const auto direction =
      compare.getAttrOfType<mlir::IntegerAttr>("comparison_direction");
  if (!direction || compare.getOperand(0) != block.getArgument(0))
    return std::nullopt;
  constexpr std::pair<int64_t, Compare> kDirections[] = {
      {2, Compare::ge}, {3, Compare::gt}, {4, Compare::le}, {5, Compare::lt}};
  for (const auto& [number, kind] : kDirections)
    if (direction.getInt() == number) return kind;
  return std::nullopt;
}

// The positions within a window, row-major.
llvm::SmallVector<Shape> positionsOf(Dims window) {
  llvm::SmallVector<Shape> positions = {Shape()};
  for (int64_t size : window) {
    llvm::SmallVector<Shape> longer;
    for (const Shape& position : positions)
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(position);
        longer.back().push_back(i);
      }
    positions = std::move(longer);
  }
  return positions;
}

}  // namespace

Val importSelectAndScatter(OpContext& n) {
  Val x = n.in(0), source = n.in(1);
  const Val init = n.in(2);
  if (n.failed()) return {};
  const size_t rank = x.rank();
  const auto orOnes = [&](llvm::StringRef name) {
    Shape values = n.ints(name);
    if (values.empty()) values.assign(rank, 1);
    return values;
  };
  const Shape window = orOnes("window_dimensions"),
              strides = orOnes("window_strides");
  Shape padding = n.ints("padding");
  if (padding.empty()) padding.assign(2 * rank, 0);
  if (n.failed()) return {};
  bool fits = window.size() == rank && strides.size() == rank &&
              padding.size() == 2 * rank && builder::isPositive(window) &&
              builder::isPositive(strides) && source.rank() == x.rank() &&
              source.elementType() == x.elementType();
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = isBelow31Bits(padding[2 * i]) && isBelow31Bits(padding[2 * i + 1]);
    if (!fits) break;
    const int64_t padded = x.dim(i) + padding[2 * i] + padding[2 * i + 1];
    fits = fits && padded >= window[i] &&
           source.dim(i) == (padded - window[i]) / strides[i] + 1;
  }
  if (!fits) return n.error("expected a source with an entry per window");
  const auto keep = selectionOf(n);
  const ElementType type = x.elementType();
  const auto sum_kind = reduceKindOf(n.onlyOperation(1), x);
  if (!keep || !sum_kind ||
      *sum_kind != (x.isBool() ? nn::ReduceKind::max : nn::ReduceKind::sum) ||
      !isNeutral(n.e, *sum_kind, init))
    return n.unsupported(
        "other than the largest or smallest element of a window, and sums "
        "from 0");
  // A sum of booleans is true if the sum as integers is not 0.
  if (x.isBool()) {
    x = n.e.cast(x, n.e.builder().getI32Type());
    source = n.e.cast(source, n.e.builder().getI32Type());
  }
  int64_t count = 1;
  for (int64_t size : window)
    if ((count *= size) > kMaxWindow)
      return n.unsupported("a window of more than " + llvm::Twine(kMaxWindow) +
                           " elements");
  Emitter& e = n.e;
  Shape low, high;
  for (size_t i = 0; i < rank; ++i) {
    low.push_back(padding[2 * i]);
    high.push_back(padding[2 * i + 1]);
  }
  // Padding is the last choice: among floats only a window of infinities alone
  // has elements that are no better. Integers are compared with their places.
  const bool is_largest = *keep == Compare::ge || *keep == Compare::gt;
  const auto chosen_kind =
      is_largest ? nn::ReduceKind::max : nn::ReduceKind::min;
  const Val padded =
      e.pad(x, e.neutral(chosen_kind, x.elementType()), low, high);
  if (e.failed()) return {};
  const mlir::Type i32 = e.builder().getI32Type();
  const bool is_padded =
      llvm::any_of(padding, [](int64_t size) { return size > 0; });
  Val inner;  // 1 for elements, 0 for padding
  if (is_padded && !x.isFloat())
    inner = e.pad(e.broadcast(e.splat(1, i32), x.shape()), e.splat(0, i32), low,
                  high);
  if (e.failed()) return {};
  // The number of each window's chosen position.
  const llvm::SmallVector<Shape> positions = positionsOf(window);
  Val best, chosen, best_inner;
  for (auto [k, position] : llvm::enumerate(positions)) {
    const Val element = e.slice(padded, position, source.shape(), strides);
    const Val number = e.splat(static_cast<double>(k), i32);
    const Val own_inner =
        inner ? e.slice(inner, position, source.shape(), strides) : Val();
    if (!best) {
      best = element;
      best_inner = own_inner;
      chosen = e.broadcast(number, source.shape());
      continue;
    }
    Val stays = e.compare(*keep, best, element);
    if (inner) {
      // An element replaces padding, and never the other way round.
      stays = e.select(e.compare(Compare::eq, best_inner, own_inner), stays,
                       e.compare(Compare::gt, best_inner, own_inner));
      best_inner = e.maximum(best_inner, own_inner);
    }
    best = e.select(stays, best, element);
    chosen = e.select(stays, chosen, number);
  }
  // Each position's entries, put where they lie in the padded operand.
  Shape between;
  for (int64_t stride : strides) between.push_back(stride - 1);
  const Val none = e.splat(0, x.elementType());
  Val sum;
  for (auto [k, position] : llvm::enumerate(positions)) {
    const Val own = e.select(
        e.compare(Compare::eq, chosen, static_cast<double>(k)), source, none);
    const Val apart = builder::spreadApart(e, own, none, between);
    Shape before, after;
    for (size_t i = 0; i < rank; ++i) {
      // Negative padding crops what lies in the operand's padding.
      before.push_back(position[i] - low[i]);
      after.push_back(x.dim(i) - before[i] - apart.dim(i));
    }
    const Val placed = e.pad(apart, none, before, after);
    sum = sum ? e.add(sum, placed) : placed;
    if (e.failed()) return {};
  }
  return e.cast(sum, type);
}

}  // namespace partita::stablehlo
