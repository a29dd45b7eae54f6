// Numbers shards row-major over the divided dimensions, in order, and finds the
// shard that each position of the mesh holds.
#include "compiler/driver/sharding_spec.h"

#include <numeric>

namespace partita::driver {
namespace {

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Factors of a dimension, the first of which is divided. There is one factor if
// the block is the even share, else there are two: rows, and elements per row.
std::optional<std::vector<onnx::SimpleSharding>> factorsOf(
    int64_t size, const core::DimSharding& dim) {
  const int64_t shards = core::SizeOf(dim.axes);
  const int64_t block = core::BlockOf(size, dim);
  onnx::SimpleSharding first;
  first.shards = shards;
  if (block == ceilDivide(size, shards)) return {{first}};
  const int64_t common = std::gcd(size, block);
  for (int64_t row = 2; row <= common; ++row) {
    if (common % row != 0 || ceilDivide(size / row, shards) != block / row)
      continue;
    first.size = size / row;
    onnx::SimpleSharding rest;
    rest.size = row;
    rest.shards = 1;
    return {{first, rest}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<onnx::ShardingSpec> specOf(const core::Mesh& mesh,
                                         const std::vector<int64_t>& shape,
                                         const core::Sharding& sharding) {
  if (!sharding.unreduced.empty()) return std::nullopt;
  onnx::ShardingSpec spec;
  std::vector<core::AxisRef> axes;
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const core::DimSharding& dim = sharding.dims[i];
    if (core::SizeOf(dim.axes) == 1) continue;
    auto factors = factorsOf(shape[i], dim);
    if (!factors) return std::nullopt;
    spec.dims.push_back({static_cast<int64_t>(i), std::move(*factors)});
    axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
  }
  std::vector<std::vector<int64_t>> holders(core::SizeOf(axes));
  for (int64_t position = 0; position < mesh.Size(); ++position)
    holders[core::IndexAlong(mesh, axes, position)].push_back(
        mesh.device_ids.empty() ? position : mesh.device_ids[position]);
  for (std::vector<int64_t>& holder : holders) {
    if (holder.size() == 1) {
      spec.devices.push_back(holder[0]);
      continue;
    }
    const int64_t key = -1 - static_cast<int64_t>(spec.groups.size());
    spec.devices.push_back(key);
    spec.groups.push_back({key, std::move(holder)});
  }
  return spec;
}

}  // namespace partita::driver
