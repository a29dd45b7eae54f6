// Parts of tensors, and writing to them.
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

// The elements start, start + step, ... of a dimension.
struct Part {
  int64_t axis = 0, start = 0, count = 0, step = 1;
};

Part slicePart(NodeContext& n, Val x) {
  Part part;
  part.axis = n.axis("dim", x.rank(), 0);
  part.step = n.integer("step", 1);
  if (part.step < 1) n.error("expected a positive step");
  if (n.failed()) return part;
  const int64_t size = x.dim(part.axis);
  const auto clamped = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  part.start = clamped(n.integer("start", 0));
  const int64_t end =
      n.op == "aten.narrow"
          ? part.start +
                std::clamp<int64_t>(n.integer("length"), 0, size - part.start)
          : clamped(n.integer("end", INT64_MAX));
  part.step = std::min(part.step, std::max<int64_t>(size, 1));
  part.count =
      std::max<int64_t>((end - part.start + part.step - 1) / part.step, 0);
  return part;
}

Part selectPart(NodeContext& n, Val x) {
  Part part;
  part.axis = n.axis("dim", x.rank());
  if (n.failed()) return part;
  const int64_t size = x.dim(part.axis), index = n.integer("index");
  part.count = 1;
  if (index < -size || index >= size)
    n.error("expected an index below " + llvm::Twine(size) + ", found " +
            llvm::Twine(index));
  part.start = index < 0 ? index + size : index;
  return part;
}

Val read(Emitter& e, Val x, const Part& part) {
  return e.sliceDim(x, part.axis, part.start, part.count, part.step);
}

// `base` with this part replaced.
Val write(NodeContext& n, Val base, Val value, const Part& part) {
  Emitter& e = n.e;
  if (part.count == 0) return base;
  if (part.step == 1) {
    const int64_t end = part.start + part.count;
    return e.concat(
        {e.sliceDim(base, part.axis, 0, part.start), value,
         e.sliceDim(base, part.axis, end, base.dim(part.axis) - end)},
        part.axis);
  }
  // Rows of the moved axis.
  Shape perm = countUp(base.rank());
  perm.erase(perm.begin() + part.axis);
  perm.insert(perm.begin(), part.axis);
  const Val counts = e.iota({part.count, 1}, 0, e.i64());
  const Val rows = e.add(e.mul(counts, static_cast<double>(part.step)),
                         e.splatLike(static_cast<double>(part.start), counts));
  Val moved = e.scatter(e.transpose(base, perm), rows, e.transpose(value, perm),
                        {0}, nn::ScatterKind::set);
  return e.transpose(moved, builder::inversePermutation(perm));
}

}  // namespace

Val importSlice(NodeContext& n) {
  Val x = n.tensor("self");
  const Part part = slicePart(n, x);
  return n.failed() ? Val() : read(n.e, x, part);
}

Val writeSlice(NodeContext& n, Val base, Val value) {
  const Part part = slicePart(n, base);
  return n.failed() ? Val() : write(n, base, value, part);
}

Val importSelect(NodeContext& n) {
  Val x = n.tensor("self");
  const Part part = selectPart(n, x);
  if (n.failed()) return {};
  Shape shape(x.shape());
  shape.erase(shape.begin() + part.axis);
  return n.e.reshape(read(n.e, x, part), shape);
}

Val writeSelect(NodeContext& n, Val base, Val value) {
  const Part part = selectPart(n, base);
  if (n.failed()) return {};
  Shape shape(base.shape());
  shape[part.axis] = 1;
  return write(n, base, n.e.reshape(value, shape), part);
}

// split by a size or sizes, and chunk.
Val importSplit(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank(), 0);
  if (n.failed()) return {};
  const int64_t size = x.dim(axis);
  Shape sizes;
  if (n.has("split_sizes") || (n.has("split_size") && n.overload == "sizes")) {
    sizes = n.ints(n.has("split_sizes") ? "split_sizes" : "split_size");
  } else {
    int64_t part = 0;
    if (n.op == "aten.chunk") {
      const int64_t chunks = n.integer("chunks");
      if (chunks > 0) part = size / chunks + (size % chunks != 0 ? 1 : 0);
    } else {
      part = n.integer("split_size");
    }
    if (n.failed()) return {};
    if (part < 1) return n.error("expected parts of at least one element");
    // A file may ask for more parts than it has results.
    for (int64_t start = 0; start < size; start += part) {
      if (sizes.size() == n.results().size())
        return n.error("expected a result for each part, found " +
                       llvm::Twine(n.results().size()) + " results");
      sizes.push_back(std::min(part, size - start));
      if (part >= size - start) break;
    }
  }
  if (n.failed()) return {};
  int64_t start = 0;
  for (auto [i, part] : llvm::enumerate(sizes)) {
    if (part < 0 || part > size - start)
      return n.error("expected parts that add up to the dimension's size");
    n.out(static_cast<unsigned>(i), n.e.sliceDim(x, axis, start, part));
    start += part;
  }
  return {};
}

Val importUnbind(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank(), 0);
  if (n.failed()) return {};
  Shape shape(x.shape());
  shape.erase(shape.begin() + axis);
  const int64_t count =
      std::min<int64_t>(x.dim(axis), static_cast<int64_t>(n.results().size()));
  for (int64_t i = 0; i < count; ++i)
    n.out(static_cast<unsigned>(i),
          n.e.reshape(n.e.sliceDim(x, axis, i, 1), shape));
  return {};
}

}  // namespace partita::torch
