// Local shapes and text of shardings.
#include "compiler/core/sharding.h"

#include <algorithm>

namespace partita::core {

Sharding Replicated(int rank) {
  Sharding sharding;
  sharding.dims.resize(rank);
  return sharding;
}

bool Uses(const Sharding& sharding, const AxisRef& ref) {
  for (const DimSharding& dim : sharding.dims)
    if (OverlapAny(ref, dim.axes)) return true;
  return OverlapAny(ref, sharding.replicated) ||
         OverlapAny(ref, sharding.unreduced);
}

bool IsSharded(const Sharding& sharding) {
  for (const DimSharding& dim : sharding.dims)
    if (!dim.axes.empty()) return true;
  return !sharding.unreduced.empty();
}

int64_t BlockOf(int64_t size, const DimSharding& dim) {
  if (dim.axes.empty()) return size;
  if (dim.block > 0) return dim.block;
  const int64_t shards = SizeOf(dim.axes);
  return (size + shards - 1) / shards;
}

void CanonicalizeBlocks(const std::vector<int64_t>& shape, Sharding& sharding) {
  for (size_t i = 0; i < shape.size(); ++i) {
    DimSharding even = sharding.dims[i];
    even.block = 0;
    if (even.axes.empty() ||
        BlockOf(shape[i], even) == BlockOf(shape[i], sharding.dims[i]))
      sharding.dims[i].block = 0;
  }
}

std::vector<int64_t> LocalShape(const std::vector<int64_t>& shape,
                                const Sharding& sharding) {
  std::vector<int64_t> local(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    local[i] = BlockOf(shape[i], sharding.dims[i]);
  return local;
}

bool IsUneven(const std::vector<int64_t>& shape, const Sharding& sharding) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (BlockOf(shape[i], sharding.dims[i]) * SizeOf(sharding.dims[i].axes) !=
        shape[i])
      return true;
  return false;
}

Interval OwnedRows(const Mesh& mesh, int64_t size, const DimSharding& dim,
                   int64_t position) {
  const int64_t block = BlockOf(size, dim);
  const int64_t begin =
      std::min(size, block * IndexAlong(mesh, dim.axes, position));
  return {begin, std::min(size, begin + block)};
}

std::string ToString(const Mesh& mesh, const Sharding& sharding) {
  std::string text = "[";
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    if (i > 0) text += ", ";
    text += "{" + ToString(mesh, dim.axes);
    if (dim.open) text += dim.axes.empty() ? "?" : ", ?";
    text += "}";
    if (dim.block > 0) text += "|" + std::to_string(dim.block);
  }
  text += "]";
  if (!sharding.replicated.empty())
    text += " replicated={" + ToString(mesh, sharding.replicated) + "}";
  if (!sharding.unreduced.empty())
    text += " unreduced={" + ToString(mesh, sharding.unreduced) + "}";
  return text;
}

}  // namespace partita::core
