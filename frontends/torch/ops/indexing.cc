// Embeddings, indexing with tensors, gather and scatter.
#include "frontends/builder/indexing.h"

#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

// Index tensors of one shape, for some dimensions of a tensor.
struct Indices {
  Shape axes;
  Val vectors;  // [index shape..., axes]
  Shape shape;  // of one index tensor
};

bool isMask(Val index) { return index && index.isBool(); }

Indices readIndices(NodeContext& n, Val x, llvm::ArrayRef<Val> given) {
  Emitter& e = n.e;
  Indices result;
  if (static_cast<int64_t>(given.size()) > x.rank()) {
    n.error("expected at most " + llvm::Twine(x.rank()) + " indices");
    return result;
  }
  llvm::SmallVector<Val> wrapped;
  for (auto [axis, index] : llvm::enumerate(given)) {
    if (!index) continue;
    if (index.isFloat()) n.error("expected indices that are integers");
    if (index.isBool())
      n.unsupported(
          "indexing by a mask, which gives a shape that depends on "
          "data,");
    if (n.failed()) return result;
    result.axes.push_back(static_cast<int64_t>(axis));
    wrapped.push_back(e.cast(
        e.wrapIndices(index, x.dim(static_cast<int64_t>(axis))), e.i64()));
    result.shape = e.broadcastShape(result.shape, index.shape());
    if (n.failed()) return result;
  }
  if (wrapped.empty()) {
    n.error("expected an index");
    return result;
  }
  for (Val& index : wrapped)
    index = builder::withOne(e, e.broadcast(index, result.shape));
  result.vectors = e.concat(wrapped, static_cast<int64_t>(result.shape.size()));
  return result;
}

// Returns the position of the index's dimensions in the result: the first
// indexed dimension if the indexed ones are adjacent, otherwise 0.
int64_t positionOf(const Indices& indices) {
  for (size_t i = 1; i < indices.axes.size(); ++i)
    if (indices.axes[i] != indices.axes[i - 1] + 1) return 0;
  return indices.axes.front();
}

// The permutation that moves `count` leading dimensions to `position`.
Shape moveLeading(int64_t rank, int64_t count, int64_t position) {
  Shape perm;
  for (int64_t i = 0; i < position; ++i) perm.push_back(count + i);
  for (int64_t i = 0; i < count; ++i) perm.push_back(i);
  for (int64_t i = position + count; i < rank; ++i) perm.push_back(i);
  return perm;
}

}  // namespace

Val importEmbedding(NodeContext& n) {
  Val weight = n.tensor("weight"), indices = n.tensor("indices");
  if (n.failed()) return {};
  if (weight.rank() != 2 || indices.isFloat())
    return n.error("expected a matrix of weights and integer indices");
  return n.e.gather(weight, builder::withOne(n.e, indices), {0});
}

Val importIndex(NodeContext& n) {
  Val x = n.tensor("self");
  llvm::SmallVector<Val> given = n.tensors("indices");
  if (n.failed()) return {};
  const auto single = llvm::find_if(given, [](Val v) { return bool(v); });
  if (single != given.end() && !isMask(*single) && !single->isFloat() &&
      llvm::count_if(given, [](Val v) { return bool(v); }) == 1 &&
      single - given.begin() < x.rank())
    return builder::take(n.e, x, *single, single - given.begin());
  const Indices indices = readIndices(n, x, given);
  if (n.failed()) return {};
  Val gathered = n.e.gather(x, indices.vectors, indices.axes);
  if (n.failed()) return {};
  return n.e.transpose(
      gathered,
      moveLeading(gathered.rank(), static_cast<int64_t>(indices.shape.size()),
                  positionOf(indices)));
}

Val importIndexPut(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self"), values = n.tensor("values");
  llvm::SmallVector<Val> given = n.tensors("indices");
  const bool accumulates = n.flag("accumulate", false);
  if (n.failed()) return {};
  values = e.cast(values, x.elementType());
  if (given.size() == 1 && isMask(given.front())) {
    // A mask over the first dimensions, and one value for all of them.
    Val mask = given.front();
    if (accumulates || values.rank() != 0 || mask.rank() > x.rank())
      return n.unsupported("other values than one number under a mask");
    Shape shape(mask.shape());
    while (static_cast<int64_t>(shape.size()) < x.rank()) shape.push_back(1);
    return e.select(e.reshape(mask, shape), values, x);
  }
  const Indices indices = readIndices(n, x, given);
  if (n.failed()) return {};
  // The shape that indexing would give, with the index first.
  Shape shape(indices.shape);
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(indices.axes, i)) shape.push_back(x.dim(i));
  const Shape perm = moveLeading(static_cast<int64_t>(shape.size()),
                                 static_cast<int64_t>(indices.shape.size()),
                                 positionOf(indices));
  Shape moved;
  for (int64_t dim : perm) moved.push_back(shape[dim]);
  Val updates = e.transpose(e.broadcast(values, moved),
                            builder::inversePermutation(perm));
  return e.scatter(x, indices.vectors, updates, indices.axes,
                   accumulates ? nn::ScatterKind::add : nn::ScatterKind::set);
}

Val importIndexSelect(NodeContext& n) {
  Val x = n.tensor("self"), index = n.tensor("index");
  const int64_t axis = n.axis("dim", x.rank());
  if (n.failed()) return {};
  if (index.isFloat() || index.isBool() || index.rank() > 1)
    return n.error("expected a vector of integers");
  if (index.rank() == 0) index = n.e.reshape(index, {1});
  return builder::take(n.e, x, index, axis);
}

Val importGather(NodeContext& n) {
  Val x = n.tensor("self"), index = n.tensor("index");
  const int64_t axis = n.axis("dim", x.rank());
  if (n.failed()) return {};
  bool fits = index.rank() == x.rank() && !index.isFloat();
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = i == axis || index.dim(i) <= x.dim(i);
  if (!fits) return n.error("expected integer indices that fit the tensor");
  return builder::gatherElements(n.e, x, index, axis);
}

Val importScatter(NodeContext& n) {
  Val x = n.tensor("self"), index = n.tensor("index");
  const int64_t axis = n.axis("dim", x.rank());
  const bool has_source = n.has("src");
  Val source =
      has_source ? n.tensor("src") : n.operand("value", x.elementType());
  if (n.failed()) return {};
  if (index.rank() != x.rank() || index.isFloat())
    return n.error("expected integer indices of the tensor's rank");
  if (!has_source) {
    source = n.e.broadcast(source, index.shape());
  } else {
    bool fits = source.rank() == index.rank();
    for (int64_t i = 0; fits && i < index.rank(); ++i)
      fits = index.dim(i) <= source.dim(i);
    if (!fits) return n.error("expected indices within the source");
    source = n.e.slice(source, Shape(index.rank(), 0), index.shape(),
                       Shape(index.rank(), 1));
  }
  const std::string reduce = n.text("reduce", "");
  if (!reduce.empty()) return n.unsupported("reduce=" + reduce);
  return builder::scatterElements(
      n.e, x, index, n.e.cast(source, x.elementType()), axis,
      n.op == "aten.scatter_add" ? nn::ScatterKind::add : nn::ScatterKind::set);
}

Val importOneHot(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t classes = n.integer("num_classes", -1);
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  if (classes < 1)
    return n.unsupported("a number of classes that depends on data");
  Shape shape(x.shape());
  shape.push_back(classes);
  Val hit =
      n.e.compare(Compare::eq, builder::withOne(n.e, n.e.cast(x, n.e.i64())),
                  n.e.iota(shape, x.rank(), n.e.i64()));
  return n.e.cast(hit, type);
}

}  // namespace partita::torch
