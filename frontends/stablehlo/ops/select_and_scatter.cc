// Gradients of pooling: each window's chosen element gets the window's entry of
// the source.
#include <cstdlib>

#include "frontends/builder/padding.h"
#include "frontends/builder/window.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// Maximum number of elements of a window: each is a slice of the operand.
constexpr int64_t kMaxWindow = 1024;

// True if the region keeps its first argument where it is larger, or not
// smaller than the second; `keep` tells which.
bool choosesLargest(OpContext& n, Compare& keep) {
  if (n.onlyOperation(0) != "compare") return false;
  mlir::Block& block = n.op.getRegion(0).front();
  mlir::Operation& compare = block.front();
  const auto direction =
      compare.getAttrOfType<mlir::IntegerAttr>("comparison_direction");
  constexpr int64_t kGe = 2, kGt = 3;
  if (!direction || compare.getOperand(0) != block.getArgument(0)) return false;
  keep = direction.getInt() == kGe ? Compare::ge : Compare::gt;
  return direction.getInt() == kGe || direction.getInt() == kGt;
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
  const Val x = n.in(0), source = n.in(1), init = n.in(2);
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
              builder::isPositive(strides) && x.isFloat() &&
              source.rank() == x.rank() &&
              source.elementType() == x.elementType();
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = isBelow31Bits(padding[2 * i]) && isBelow31Bits(padding[2 * i + 1]);
    if (!fits) break;
    const int64_t padded = x.dim(i) + padding[2 * i] + padding[2 * i + 1];
    fits = fits && padded >= window[i] &&
           source.dim(i) == (padded - window[i]) / strides[i] + 1;
  }
  if (!fits)
    return n.error("expected floats, and a source with an entry per window");
  Compare keep;
  const auto zero = init.constant();
  if (!choosesLargest(n, keep) || n.onlyOperation(1) != "add" || !zero ||
      !zero.isSplat() || !init.isFloat() ||
      !zero.getSplatValue<llvm::APFloat>().isZero())
    return n.unsupported(
        "other than the largest element of a window, and sums from 0");
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
  const Val padded =
      e.pad(x, e.neutral(nn::ReduceKind::max, x.elementType()), low, high);
  if (e.failed()) return {};
  // The number of each window's chosen position.
  const llvm::SmallVector<Shape> positions = positionsOf(window);
  Val largest, chosen;
  const mlir::Type i32 = e.builder().getI32Type();
  for (auto [k, position] : llvm::enumerate(positions)) {
    const Val element = e.slice(padded, position, source.shape(), strides);
    const Val number = e.splat(static_cast<double>(k), i32);
    if (!largest) {
      largest = element;
      chosen = e.broadcast(number, source.shape());
      continue;
    }
    const Val stays = e.compare(keep, largest, element);
    largest = e.select(stays, largest, element);
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
  return sum;
}

}  // namespace partita::stablehlo
