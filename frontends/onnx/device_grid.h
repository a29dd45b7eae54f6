// Finds the mesh behind lists of devices: ONNX says of each tensor which device
// holds which shard, a mesh says it for all tensors at once. Plain data.
#ifndef PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_
#define PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::onnx {

// Which devices hold which shard of one tensor.
struct Placement {
  // Number of shards of each divided dimension, the first the slowest.
  std::vector<int64_t> counts;
  // Per shard, row-major over `counts`: its devices. Each device stands once.
  std::vector<std::vector<int64_t>> holders;

  bool operator==(const Placement& other) const {
    return counts == other.counts && holders == other.holders;
  }
};

// A mesh, row-major, the first axis the slowest.
struct Grid {
  std::vector<int64_t> sizes;
  // The device at each position; empty: device i at i.
  std::vector<int64_t> device_ids;
  // [placement][dimension]: the axes that divide it, the first the most
  // significant.
  std::vector<std::vector<std::vector<int>>> axes;
};

// Devices that a configuration may have: bounds the work.
inline constexpr int64_t kMaxDevices = 1 << 16;

// The grid of the fewest axes, among the orders in which devices count up (0,
// 1, ... first, then that of each placement with a device per shard), in which
// every dimension of every placement is divided by whole axes. False if there
// is none; `culprit` is a placement that fits into no grid alone, or the first
// that does not fit beside those before it.
bool findGrid(int64_t devices, const std::vector<Placement>& placements,
              Grid& grid, size_t& culprit);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_
