// Sequences: lists of tensors, whose lengths are known when the model is
// imported. No operation of nn makes or takes one.
#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::onnx {

// Parts of given sizes, or of one size with a smaller last one.
LogicalResult importSplitToSequence(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  if (failed(axis)) return failure();
  constexpr int64_t kMaxParts = 4096;
  const auto tooMany = [&] {
    return n.error("expected at most " + llvm::Twine(kMaxParts) +
                   " parts of an axis");
  };
  const int64_t size = x.dim(*axis);
  Shape sizes;
  if (!n.has(1)) {
    if (size > kMaxParts) return tooMany();
    sizes.assign(size, 1);
  } else {
    auto given = n.constInts(1);
    if (failed(given)) return failure();
    sizes = *given;
    if (n.in(1).rank() == 0) {
      const int64_t chunk = sizes.front();
      if (chunk < 1) return n.error("expected a positive size of the parts");
      if (size / chunk >= kMaxParts) return tooMany();
      sizes.assign(size / chunk, chunk);
      if (size % chunk != 0) sizes.push_back(size % chunk);
    }
  }
  const bool keeps = n.has(1) || n.attrInt("keepdims", 1) != 0;
  llvm::SmallVector<Val> parts;
  int64_t start = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size - start)
      return n.error("expected parts that add up to the axis's size");
    Val value = n.e.sliceDim(x, *axis, start, part);
    if (!keeps) {
      Shape shape(value.shape());
      shape.erase(shape.begin() + *axis);
      value = n.e.reshape(value, shape);
    }
    parts.push_back(value);
    start += part;
  }
  if (start != size)
    return n.error("expected parts that add up to the axis's size");
  return n.sequenceResult(parts);
}

LogicalResult importSequenceConstruct(NodeContext& n) {
  return n.sequenceResult(n.ins());
}

LogicalResult importSequenceAt(NodeContext& n) {
  auto values = n.sequence(0);
  if (failed(values)) return failure();
  auto position = n.constInts(1);
  if (failed(position)) return failure();
  const auto length = static_cast<int64_t>(values->size());
  int64_t i = position->size() == 1 ? position->front() : length;
  if (i < 0) i += length;
  if (i < 0 || i >= length)
    return n.error("expected a position within the " + llvm::Twine(length) +
                   " tensors of the sequence");
  return n.result((*values)[i]);
}

LogicalResult importSequenceLength(NodeContext& n) {
  auto values = n.sequence(0);
  if (failed(values)) return failure();
  return n.result(n.e.ints({static_cast<int64_t>(values->size())}, {}));
}

LogicalResult importConcatFromSequence(NodeContext& n) {
  auto values = n.sequence(0);
  if (failed(values)) return failure();
  if (values->empty()) return n.error("expected a sequence with tensors");
  const bool adds_axis = n.attrInt("new_axis", 0) != 0;
  const int64_t rank = values->front().rank() + (adds_axis ? 1 : 0);
  auto axis = n.axis(n.attrInt("axis", 0), rank);
  if (failed(axis)) return failure();
  for (Val& value : *values) {
    if (!adds_axis) continue;
    Shape shape(value.shape());
    if (static_cast<int64_t>(shape.size()) != rank - 1)
      return n.error("expected tensors of one rank");
    shape.insert(shape.begin() + *axis, 1);
    value = n.e.reshape(value, shape);
  }
  return n.result(n.e.concat(*values, *axis));
}

}  // namespace partita::onnx
