// Finds the mesh behind device lists. ONNX lists the devices of each tensor's
// shards separately; a mesh describes all tensors at once. Plain data.
#ifndef PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_
#define PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::onnx {

// The devices that hold each shard of one tensor.
struct Placement {
  // Number of shards of each divided dimension, slowest first.
  std::vector<int64_t> counts;
  // The devices of each shard, row-major over `counts`. Each device occurs
  // once.
  std::vector<std::vector<int64_t>> holders;

  bool operator==(const Placement& other) const {
    return counts == other.counts && holders == other.holders;
  }
};

// A mesh: row-major, first axis slowest.
struct Grid {
  std::vector<int64_t> sizes;
  // The device at each position; if empty, device i is at position i.
  std::vector<int64_t> device_ids;
  // [placement][dimension]: the axes that divide it, most significant first.
  std::vector<std::vector<std::vector<int>>> axes;
};

// Maximum number of devices of a configuration; bounds the work.
inline constexpr int64_t kMaxDevices = 1 << 16;

// Finds the grid with the fewest axes in which whole axes divide every
// dimension of every placement. It tries several orders of devices: 0, 1, ...
// first, then the order of each placement with one device per shard. Returns
// false if there is no grid; `culprit` is then a placement that fits no grid
// alone, or the first that does not fit together with those before it.
bool findGrid(int64_t devices, const std::vector<Placement>& placements,
              Grid& grid, size_t& culprit);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_DEVICE_GRID_H_
