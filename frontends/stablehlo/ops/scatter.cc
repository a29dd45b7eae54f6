// Scatters with general dimension numbers.
#include <optional>

#include "frontends/stablehlo/ops/indexing.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::stablehlo {
namespace {

std::optional<nn::ScatterKind> scatterKind(llvm::StringRef operation) {
  return llvm::StringSwitch<std::optional<nn::ScatterKind>>(operation)
      .Case("second", nn::ScatterKind::set)
      .Case("add", nn::ScatterKind::add)
      .Case("multiply", nn::ScatterKind::mul)
      .Cases({"maximum", "or"}, nn::ScatterKind::max)
      .Cases({"minimum", "and"}, nn::ScatterKind::min)
      .Default(std::nullopt);
}

}  // namespace

Val importScatter(OpContext& n) {
  if (n.size() != 3) return n.unsupported("a scatter to several operands");
  Val x = n.in(0);
  const Val indices = n.in(1);
  Val updates = n.in(2);
  Numbers d;
  if (n.failed() || !readNumbers(n, x, indices, updates.rank(),
                                 /*is_scatter=*/true, d))
    return {};
  const llvm::StringRef operation = n.onlyOperation(0);
  const ElementType type = x.elementType();
  const bool is_bool = x.isBool();
  // Booleans add as "or" and multiply as "and".
  const auto kind = scatterKind(!is_bool                  ? operation
                                : operation == "add"      ? "or"
                                : operation == "multiply" ? "and"
                                                          : operation);
  if (!kind || (!is_bool && (operation == "or" || operation == "and")))
    return n.unsupported("a scatter of " + toString(type) +
                         " with this function");
  // Scatters compare integers as signed: booleans become integers 0 and 1, and
  // the order of unsigned ones is kept with their top bit flipped.
  const bool flips = x.is_unsigned && (*kind == nn::ScatterKind::max ||
                                       *kind == nn::ScatterKind::min);
  const auto flip = [&](Val value) {
    const auto top = mlir::DenseElementsAttr::get(
        n.e.tensor({}, value.element()),
        llvm::APInt::getSignMask(value.element().getIntOrFloatBitWidth()));
    return n.e.bitXor(value, n.e.constant(top, value.is_unsigned));
  };
  for (Val* value : {&x, &updates}) {
    if (is_bool) *value = n.e.cast(*value, n.e.builder().getI32Type());
    if (flips) *value = flip(*value);
  }
  // The sizes of a window are those of the updates.
  d.sizes.assign(x.rank(), 1);
  size_t next = 0;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(d.dropped, i) && !llvm::is_contained(d.batch, i))
      d.sizes[i] = updates.dim(d.window[next++]);
  if (!checkSizes(n, x, d)) return {};
  if (updates.rank() != static_cast<int64_t>(d.window.size()) + indices.rank() -
                            (d.vector_dim < indices.rank() ? 1 : 0))
    return n.error(
        "expected updates with the dimensions of indices and "
        "windows");
  // A window along a dimension that is not indexed begins at 0. Where it is
  // shorter, the rest of the operand stays as it is.
  const Val whole = x;
  Shape part(x.shape());
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(d.map, i) && !llvm::is_contained(d.batch, i) &&
        !llvm::is_contained(d.dropped, i))
      part[i] = d.sizes[i];
  const auto takeFirst = [&](Dims sizes) {
    return n.e.slice(whole, Shape(whole.rank(), 0), sizes,
                     Shape(whole.rank(), 1));
  };
  x = takeFirst(part);
  Shape perm;
  const Val moved = batchFirst(n.e, x, d, perm);
  const Indices built = buildIndices(n, moved, indices, d, /*clamps=*/false);
  if (n.failed()) return {};
  if (built.axes.empty()) return n.unsupported("a scatter without indices");
  const int64_t rank =
      indices.rank() + (d.vector_dim == indices.rank() ? 1 : 0);
  const Shape order = resultOrder(d, built, x.rank(), rank);
  updates = n.e.transpose(updates, builder::inversePermutation(order));
  Val result = n.e.scatter(moved, built.vectors, updates, built.axes, *kind,
                           d.batch.size());
  if (n.failed()) return {};
  result = n.e.transpose(result, builder::inversePermutation(perm));
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t left = whole.dim(i) - result.dim(i);
    if (left == 0) continue;
    part[i] = whole.dim(i);
    result = n.e.concat(
        {result, n.e.sliceDim(takeFirst(part), i, result.dim(i), left)}, i);
  }
  return n.e.cast(flips ? flip(result) : result, type);
}

}  // namespace partita::stablehlo
