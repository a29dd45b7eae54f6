// Gathers and dynamic slices with general dimension numbers, mapped to
// nn.gather and nn.scatter.
#include "frontends/stablehlo/ops/indexing.h"

#include <optional>

#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {

bool readNumbers(OpContext& n, Val x, Val indices, int64_t result_rank,
                 bool is_scatter, Numbers& d) {
  d.window = n.dimensions(is_scatter ? "update_window_dims" : "offset_dims",
                          result_rank);
  d.dropped = n.dimensions(
      is_scatter ? "inserted_window_dims" : "collapsed_slice_dims", x.rank());
  d.batch = n.dimensions(
      is_scatter ? "input_batching_dims" : "operand_batching_dims", x.rank());
  d.indices_batch = n.dimensions(is_scatter ? "scatter_indices_batching_dims"
                                            : "start_indices_batching_dims",
                                 indices.rank());
  d.map = n.dimensions(
      is_scatter ? "scatter_dims_to_operand_dims" : "start_index_map",
      x.rank());
  d.vector_dim = n.integer("index_vector_dim");
  if (n.failed()) return false;
  bool fits = d.vector_dim >= 0 && d.vector_dim <= indices.rank() &&
              d.batch.size() == d.indices_batch.size() &&
              llvm::is_sorted(d.window) &&
              !llvm::is_contained(d.indices_batch, d.vector_dim);
  const int64_t components =
      fits && d.vector_dim < indices.rank() ? indices.dim(d.vector_dim) : 1;
  fits = fits && components == static_cast<int64_t>(d.map.size()) &&
         static_cast<int64_t>(d.window.size() + d.dropped.size() +
                              d.batch.size()) == x.rank();
  for (int64_t dim : d.batch)
    fits = fits && !llvm::is_contained(d.dropped, dim) &&
           !llvm::is_contained(d.map, dim);
  for (size_t i = 0; fits && i < d.batch.size(); ++i)
    fits = x.dim(d.batch[i]) == indices.dim(d.indices_batch[i]);
  if (!fits || indices.isFloat()) {
    n.error("expected dimension numbers that fit operand " +
            toString(x.shape()) + " and indices " + toString(indices.shape()));
    return false;
  }
  return true;
}

bool checkSizes(OpContext& n, Val x, const Numbers& d) {
  bool fits = static_cast<int64_t>(d.sizes.size()) == x.rank();
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = d.sizes[i] >= 0 && d.sizes[i] <= x.dim(i) &&
           (d.sizes[i] == 1 || (!llvm::is_contained(d.dropped, i) &&
                                !llvm::is_contained(d.batch, i)));
  if (!fits)
    n.error("expected slices within " + toString(x.shape()) + ", found " +
            toString(d.sizes));
  return fits;
}

Indices buildIndices(OpContext& n, Val x, Val given, const Numbers& d,
                     bool clamps) {
  Emitter& e = n.e;
  Indices result;
  if (given.is_unsigned || given.element().getIntOrFloatBitWidth() < 32)
    given = e.cast(given, e.i64());
  if (d.vector_dim == given.rank()) {
    Shape shape(given.shape());
    shape.push_back(1);
    given = e.reshape(given, shape);
  }
  Shape perm = d.indices_batch;
  Shape outer;  // sizes of batch and rest
  for (int64_t i = 0; i < given.rank(); ++i) {
    if (i == d.vector_dim || llvm::is_contained(d.indices_batch, i)) continue;
    perm.push_back(i);
    result.rest.push_back(given.dim(i));
  }
  for (int64_t i : d.indices_batch) outer.push_back(given.dim(i));
  outer.append(result.rest.begin(), result.rest.end());
  perm.push_back(d.vector_dim);
  given = e.transpose(given, perm);
  const int64_t last = given.rank() - 1;
  // A slice along a dimension that is not indexed begins at 0.
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    if (llvm::is_contained(d.batch, dim)) continue;
    const bool is_indexed = llvm::is_contained(d.map, dim);
    if (!is_indexed && !llvm::is_contained(d.dropped, dim)) continue;
    if (is_indexed && clamps && d.sizes[dim] == x.dim(dim) &&
        !llvm::is_contained(d.dropped, dim))
      continue;
    result.axes.push_back(dim);
    if (d.sizes[dim] != 1 || !llvm::is_contained(d.dropped, dim))
      result.spread.push_back(dim);
  }
  Shape full = outer;
  for (int64_t dim : result.spread) full.push_back(d.sizes[dim]);
  // In a scatter, a slice that does not fit is dropped whole.
  Val fits;
  if (!clamps)
    for (auto [component, dim] : llvm::enumerate(d.map)) {
      if (d.sizes[dim] == 1) continue;
      Val start = e.sliceDim(given, last, component, 1);
      Val inside =
          e.bitAnd(e.compare(Compare::ge, start, 0.0),
                   e.compare(Compare::le, start,
                             static_cast<double>(x.dim(dim) - d.sizes[dim])));
      fits = fits ? e.bitAnd(fits, inside) : inside;
    }
  llvm::SmallVector<Val> components;
  Shape with_one = full;
  with_one.push_back(1);
  for (int64_t dim : result.axes) {
    const auto component = llvm::find(d.map, dim);
    Shape shape = outer;
    shape.resize(full.size() + 1, 1);
    Val part;
    if (component == d.map.end()) {
      part = e.broadcast(e.splat(0, given.elementType()), with_one);
    } else {
      part = e.sliceDim(given, last, component - d.map.begin(), 1);
      if (clamps && d.sizes[dim] != 1)
        part = e.minimum(e.maximum(part, 0.0),
                         static_cast<double>(x.dim(dim) - d.sizes[dim]));
      if (fits)
        part = e.select(
            fits, part,
            e.splat(static_cast<double>(x.dim(dim)), part.elementType()));
      part = e.broadcast(e.reshape(part, shape), with_one);
    }
    if (const auto place = llvm::find(result.spread, dim);
        place != result.spread.end() && d.sizes[dim] != 1)
      part = e.add(part, e.iota(with_one,
                                static_cast<int64_t>(outer.size()) +
                                    (place - result.spread.begin()),
                                part.element()));
    components.push_back(part);
  }
  if (components.empty()) return result;
  result.vectors = e.concat(components, static_cast<int64_t>(full.size()));
  return result;
}

Shape resultOrder(const Numbers& d, const Indices& indices, int64_t rank,
                  int64_t indices_rank) {
  const int64_t batch = d.batch.size(), rest = indices.rest.size(),
                spread = indices.spread.size();
  // Places of the slice's dimensions.
  Shape slice_places, batch_places;
  int64_t other = batch + rest + spread;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(d.batch, dim) || llvm::is_contained(d.dropped, dim))
      continue;
    const auto place = llvm::find(indices.spread, dim);
    slice_places.push_back(place != indices.spread.end()
                               ? batch + rest + (place - indices.spread.begin())
                               : other++);
  }
  // Places of the indices' dimensions.
  int64_t next_rest = batch;
  for (int64_t i = 0; i < indices_rank; ++i) {
    if (i == d.vector_dim) continue;
    const auto place = llvm::find(d.indices_batch, i);
    batch_places.push_back(place != d.indices_batch.end()
                               ? place - d.indices_batch.begin()
                               : next_rest++);
  }
  Shape perm;
  size_t in_slice = 0, in_batch = 0;
  for (size_t i = 0; i < slice_places.size() + batch_places.size(); ++i)
    perm.push_back(llvm::is_contained(d.window, static_cast<int64_t>(i))
                       ? slice_places[in_slice++]
                       : batch_places[in_batch++]);
  return perm;
}

Val batchFirst(Emitter& e, Val x, Numbers& d, Shape& perm) {
  perm = d.batch;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(d.batch, i)) perm.push_back(i);
  const Shape place = builder::inversePermutation(perm);
  const auto renumber = [&](Shape& dims) {
    for (int64_t& dim : dims) dim = place[dim];
  };
  Shape sizes;
  for (int64_t dim : perm) sizes.push_back(d.sizes[dim]);
  d.sizes = sizes;
  renumber(d.dropped);
  renumber(d.map);
  d.batch = countUp(d.batch.size());
  return e.transpose(x, perm);
}

namespace {

Val gather(OpContext& n, Val x, Val given, Numbers d) {
  Shape perm;
  // A slice of a dimension that is not indexed is cut first.
  Shape sizes(x.shape());
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(d.map, i) && !llvm::is_contained(d.batch, i))
      sizes[i] = d.sizes[i];
  x = n.e.slice(x, Shape(x.rank(), 0), sizes, Shape(x.rank(), 1));
  x = batchFirst(n.e, x, d, perm);
  const Indices indices = buildIndices(n, x, given, d, /*clamps=*/true);
  if (n.failed()) return {};
  Val result;
  if (indices.axes.empty()) {
    // Every slice is the whole operand.
    Shape shape, dims;
    for (int64_t i : d.batch) shape.push_back(x.dim(i));
    shape.append(indices.rest.begin(), indices.rest.end());
    for (int64_t i = 0; i < x.rank(); ++i) {
      const bool is_batch = i < static_cast<int64_t>(d.batch.size());
      dims.push_back(is_batch ? i : static_cast<int64_t>(shape.size()));
      if (!is_batch) shape.push_back(x.dim(i));
    }
    result = n.e.broadcastDims(x, shape, dims);
  } else {
    result = n.e.gather(x, indices.vectors, indices.axes, d.batch.size());
  }
  if (n.failed()) return {};
  const int64_t rank = given.rank() + (d.vector_dim == given.rank() ? 1 : 0);
  return n.e.transpose(result, resultOrder(d, indices, x.rank(), rank));
}

// Start indices as constants.
std::optional<Shape> constantStarts(llvm::ArrayRef<Val> starts, Val x,
                                    Dims sizes) {
  Shape result;
  for (auto [i, start] : llvm::enumerate(starts)) {
    const auto constant = start.constant();
    if (!constant) return std::nullopt;
    const llvm::APInt number = *constant.getValues<llvm::APInt>().begin();
    const int64_t value = start.is_unsigned
                              ? static_cast<int64_t>(number.getLimitedValue(
                                    std::numeric_limits<int64_t>::max()))
                              : number.getSExtValue();
    // A slice is moved so that it fits.
    result.push_back(std::clamp<int64_t>(
        value, 0, x.dim(static_cast<int64_t>(i)) - sizes[i]));
  }
  return result;
}

bool takeStarts(OpContext& n, unsigned first, Val x, Dims sizes,
                Values& starts) {
  for (unsigned i = first; i < n.size(); ++i) starts.push_back(n.in(i));
  if (n.failed()) return false;
  bool fits = static_cast<int64_t>(starts.size()) == x.rank() &&
              static_cast<int64_t>(sizes.size()) == x.rank();
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = starts[i].rank() == 0 && !starts[i].isFloat() && sizes[i] >= 0 &&
           sizes[i] <= x.dim(i);
  if (!fits) n.error("expected a scalar start and a size per dimension");
  return fits;
}

// One index vector of i64 from scalars, for the dimensions that need one.
Val joinStarts(OpContext& n, llvm::ArrayRef<Val> starts, Dims dims) {
  llvm::SmallVector<Val> parts;
  for (int64_t dim : dims)
    parts.push_back(n.e.reshape(n.e.cast(starts[dim], n.e.i64()), {1}));
  return n.e.concat(parts, 0);
}

}  // namespace

Val importGather(OpContext& n) {
  const Val x = n.in(0), indices = n.in(1);
  const ValueType type = n.result();
  Numbers d;
  if (n.failed() || !readNumbers(n, x, indices, type.shape.size(),
                                 /*is_scatter=*/false, d))
    return {};
  d.sizes = n.ints("slice_sizes");
  if (n.failed() || !checkSizes(n, x, d)) return {};
  if (type.shape.size() != d.window.size() + indices.rank() -
                               (d.vector_dim < indices.rank() ? 1 : 0))
    return n.error(
        "expected a result with the dimensions of indices and "
        "slices");
  return gather(n, x, indices, d);
}

Val importDynamicSlice(OpContext& n) {
  const Val x = n.in(0);
  const Shape sizes = n.ints("slice_sizes");
  Values starts;
  if (n.failed() || !takeStarts(n, 1, x, sizes, starts)) return {};
  if (const auto constant = constantStarts(starts, x, sizes)) {
    if (auto rows = n.rows().find(x.value);
        rows != n.rows().end() && sizes[0] == 1 &&
        Dims(sizes).drop_front() == x.shape().drop_front())
      return rows->second[(*constant)[0]];
    return n.e.slice(x, *constant, sizes, Shape(x.rank(), 1));
  }
  // A gather of one slice.
  Numbers d;
  d.sizes = sizes;
  d.vector_dim = 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    d.window.push_back(i);
    if (sizes[i] != x.dim(i)) d.map.push_back(i);
  }
  return gather(n, x, joinStarts(n, starts, d.map), d);
}

Val importDynamicUpdateSlice(OpContext& n) {
  const Val x = n.in(0), update = n.in(1);
  Values starts;
  if (n.failed()) return {};
  const Shape sizes(update.shape());
  if (!takeStarts(n, 2, x, sizes, starts)) return {};
  if (!(update.elementType() == x.elementType()))
    return n.error("expected an update of the operand's element type");
  Shape partial;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (sizes[i] != x.dim(i)) partial.push_back(i);
  if (partial.empty()) return update;
  const auto constant = constantStarts(starts, x, sizes);
  if (constant && partial.size() == 1) {
    const int64_t dim = partial[0], start = (*constant)[dim];
    constexpr int64_t kMaxRows = 4096;
    // Loops stack their results row by row: remember the rows.
    Values rows;
    if (dim == 0 && sizes[0] == 1 && x.dim(0) <= kMaxRows) {
      if (auto known = n.rows().find(x.value); known != n.rows().end())
        rows = known->second;
      else
        for (int64_t i = 0; i < x.dim(0); ++i)
          rows.push_back(n.e.sliceDim(x, 0, i, 1));
      rows[start] = update;
    }
    const Val result = n.e.concat(
        rows.empty() ? Values{n.e.sliceDim(x, dim, 0, start), update,
                              n.e.sliceDim(x, dim, start + sizes[dim],
                                           x.dim(dim) - start - sizes[dim])}
                     : rows,
        dim);
    if (!rows.empty() && !n.failed()) n.rows()[result.value] = rows;
    return result;
  }
  Numbers d;
  d.sizes = sizes;
  d.vector_dim = 0;
  d.map = partial;
  // The slice is moved so that it fits; a scatter would drop it.
  for (int64_t i : partial)
    starts[i] = n.e.minimum(n.e.maximum(n.e.cast(starts[i], n.e.i64()), 0.0),
                            static_cast<double>(x.dim(i) - sizes[i]));
  const Val given = joinStarts(n, starts, partial);
  // Clamped, as the slice is moved so that it fits.
  const Indices indices = buildIndices(n, x, given, d, /*clamps=*/true);
  if (n.failed()) return {};
  for (int64_t i = 0; i < x.rank(); ++i) d.window.push_back(i);
  const Shape order = resultOrder(d, indices, x.rank(), 1);
  const Val moved = n.e.transpose(update, builder::inversePermutation(order));
  return n.e.scatter(x, indices.vectors, moved, indices.axes,
                     nn::ScatterKind::set);
}

// Slices along one dimension: indices take the place of dimension `dim`.
Val importIndexSelect(OpContext& n) {
  const Val x = n.in(0), indices = n.in(1);
  if (n.failed()) return {};
  const int64_t dim = n.dimension("dim", x.rank());
  const int64_t batch = n.integer("batch_dims");
  if (n.failed()) return {};
  if (batch < 0 || batch > dim || batch > indices.rank() || indices.isFloat())
    return n.error("expected batch dimensions of both, before the indexed one");
  Numbers d;
  d.sizes = Shape(x.shape());
  d.sizes[dim] = 1;
  d.map = d.dropped = {dim};
  d.vector_dim = indices.rank();
  for (int64_t i = 0; i < batch; ++i) {
    if (x.dim(i) != indices.dim(i))
      return n.error("expected equal sizes of batch dimensions");
    d.sizes[i] = 1;
    d.batch.push_back(i);
    d.indices_batch.push_back(i);
  }
  // The operand's dimensions before the indexed one, then those of the indices.
  const int64_t own = indices.rank() - batch;
  for (int64_t i = batch; i < x.rank(); ++i)
    if (i != dim) d.window.push_back(i < dim ? i : i - 1 + own);
  return gather(n, x, indices, d);
}

}  // namespace partita::stablehlo
