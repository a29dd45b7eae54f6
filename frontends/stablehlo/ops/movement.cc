// Broadcasts, shapes, slices, padding.
#include "frontends/builder/padding.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {

Val importBroadcast(OpContext& n) {
  const Val x = n.in(0);
  const ValueType type = n.result();
  const bool is_prefix = n.name == "broadcast";
  Shape dims = is_prefix
                   ? Shape()
                   : n.dimensions("broadcast_dimensions", type.shape.size());
  if (n.failed()) return {};
  const int64_t added = static_cast<int64_t>(type.shape.size()) - x.rank();
  for (int64_t i = 0; is_prefix && added >= 0 && i < x.rank(); ++i)
    dims.push_back(added + i);
  if (static_cast<int64_t>(dims.size()) != x.rank())
    return n.error("expected a dimension of the result per dimension");
  for (int64_t i = 0; i < x.rank(); ++i)
    if (x.dim(i) != 1 && x.dim(i) != type.shape[dims[i]])
      return n.error("expected sizes 1 or the result's, found " +
                     toString(x.shape()) + " and " + toString(type.shape));
  // nn's dimensions are in order.
  Shape order = countUp(x.rank());
  llvm::sort(order, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
  Shape sorted = dims;
  llvm::sort(sorted);
  Val moved = n.e.transpose(x, order);
  if (Dims(sorted) == Dims(countUp(type.shape.size())) &&
      Dims(type.shape) == moved.shape())
    return moved;
  // A shape that only gains sizes of 1 has the same elements.
  if (product(type.shape) == x.size()) return n.e.reshape(moved, type.shape);
  return n.e.broadcastDims(moved, type.shape, sorted);
}

Val importReshape(OpContext& n) {
  const Val x = n.in(0);
  const ValueType type = n.result();
  return n.failed() ? Val() : n.e.reshape(x, type.shape);
}

Val importTranspose(OpContext& n) {
  const Val x = n.in(0);
  const Shape perm = n.dimensions("permutation", x.rank());
  if (n.failed()) return {};
  if (static_cast<int64_t>(perm.size()) != x.rank())
    return n.error("expected a permutation of all dimensions");
  return n.e.transpose(x, perm);
}

Val importSlice(OpContext& n) {
  const Val x = n.in(0);
  const Shape starts = n.ints("start_indices"), ends = n.ints("limit_indices"),
              strides = n.ints("strides");
  if (n.failed()) return {};
  const size_t rank = x.rank();
  if (starts.size() != rank || ends.size() != rank || strides.size() != rank)
    return n.error("expected a start, a limit and a stride per dimension");
  Shape sizes;
  for (size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > ends[i] || ends[i] > x.dim(i) ||
        strides[i] <= 0)
      return n.error("expected 0 <= start <= limit <= size " +
                     llvm::Twine(x.dim(i)) + " and a positive stride, found " +
                     llvm::Twine(starts[i]) + ":" + llvm::Twine(ends[i]) + ":" +
                     llvm::Twine(strides[i]));
    sizes.push_back((ends[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  // A row of a value that a loop has stacked is that row.
  if (auto rows = n.rows().find(x.value);
      rows != n.rows().end() && sizes[0] == 1 &&
      Dims(sizes).drop_front() == x.shape().drop_front())
    return rows->second[starts[0]];
  return n.e.slice(x, starts, sizes, strides);
}

Val importPad(OpContext& n) {
  const Val x = n.in(0), value = n.in(1);
  const Shape low = n.ints("edge_padding_low"),
              high = n.ints("edge_padding_high"),
              interior = n.ints("interior_padding");
  if (n.failed()) return {};
  const size_t rank = x.rank();
  if (low.size() != rank || high.size() != rank || interior.size() != rank ||
      value.rank() != 0)
    return n.error("expected three numbers per dimension and a scalar");
  for (size_t i = 0; i < rank; ++i)
    if (interior[i] < 0 || !isBelow31Bits(interior[i]) ||
        !isBelow31Bits(low[i]) || !isBelow31Bits(high[i]))
      return n.error(
          "expected interior padding of at least 0, and padding below 2^31");
  return n.e.pad(builder::spreadApart(n.e, x, value, interior), value, low,
                 high);
}

Val importConcatenate(OpContext& n) {
  const Values values = n.all();
  if (n.failed()) return {};
  if (values.empty()) return n.error("expected operands");
  const int64_t dim = n.dimension("dimension", values.front().rank());
  if (n.failed()) return {};
  return n.e.concat(values, dim);
}

Val importReverse(OpContext& n) {
  Val x = n.in(0);
  const Shape dims = n.dimensions("dimensions", x.rank());
  if (n.failed()) return {};
  for (int64_t dim : dims) x = n.e.reverse(x, dim);
  return x;
}

Val importIota(OpContext& n) {
  const ValueType type = n.result();
  const int64_t dim = n.dimension("iota_dimension", type.shape.size());
  if (n.failed()) return {};
  Val counted = n.e.iota(type.shape, dim, type.element.type);
  counted.is_unsigned = type.element.is_unsigned;
  return counted;
}

}  // namespace partita::stablehlo
