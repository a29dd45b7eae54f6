// Counts shards, looks up devices in groups, and checks that each device occurs
// once.
#include "frontends/onnx/placement.h"

#include <algorithm>
#include <map>

namespace partita::onnx {
namespace {

std::string devicesUpTo(int64_t devices) {
  return "devices 0 to " + std::to_string(devices - 1);
}

bool countShards(const ShardingSpec& spec, int64_t devices,
                 std::vector<int64_t>& counts, int64_t& shards,
                 std::string& error) {
  shards = 1;
  for (const ShardedDim& dim : spec.dims) {
    if (dim.factors.empty()) {
      error = "expected a simple_sharding for axis " +
              std::to_string(dim.axis) + ", found none";
      return false;
    }
    for (const SimpleSharding& factor : dim.factors) {
      if (factor.shards < 1) {
        error = "expected a positive num_shards for axis " +
                std::to_string(dim.axis) + ", found " +
                std::to_string(factor.shards);
        return false;
      }
      if (factor.shards > devices / shards) {
        error = "expected at most as many shards as devices, " +
                std::to_string(devices) + ", found more on axis " +
                std::to_string(dim.axis);
        return false;
      }
      shards *= factor.shards;
      if (factor.shards > 1) counts.push_back(factor.shards);
    }
  }
  return true;
}

bool readGroups(const ShardingSpec& spec,
                std::map<int64_t, const std::vector<int64_t>*>& groups,
                std::string& error) {
  for (const auto& [key, members] : spec.groups) {
    if (std::find(spec.devices.begin(), spec.devices.end(), key) ==
        spec.devices.end()) {
      error =
          "expected each key of index_to_device_group_map to stand in "
          "device, found " +
          std::to_string(key) + ", which does not";
      return false;
    }
    if (!groups.try_emplace(key, &members).second) {
      error = "expected each key of index_to_device_group_map once, found " +
              std::to_string(key) + " twice";
      return false;
    }
    if (members.empty()) {
      error = "expected devices in group " + std::to_string(key) +
              " of index_to_device_group_map, found none";
      return false;
    }
  }
  return true;
}

}  // namespace

bool placementOf(const ShardingSpec& spec, int64_t devices,
                 Placement& placement, std::string& error) {
  int64_t shards = 1;
  std::map<int64_t, const std::vector<int64_t>*> groups;
  if (!countShards(spec, devices, placement.counts, shards, error) ||
      !readGroups(spec, groups, error))
    return false;
  if (static_cast<int64_t>(spec.devices.size()) != shards) {
    error = "expected one entry of device per shard, " +
            std::to_string(shards) + ", the product of all num_shards, found " +
            std::to_string(spec.devices.size());
    return false;
  }
  std::vector<bool> seen(devices);
  int64_t count = 0;
  for (int64_t entry : spec.devices) {
    const auto group = groups.find(entry);
    std::vector<int64_t> holders =
        group == groups.end() ? std::vector<int64_t>{entry} : *group->second;
    for (int64_t device : holders) {
      if (device < 0 && group == groups.end()) {
        error = "expected device to hold " + devicesUpTo(devices) +
                " or keys of index_to_device_group_map, found " +
                std::to_string(device) + ", which is neither";
        return false;
      }
      if (device < 0 || device >= devices) {
        error = "expected " + devicesUpTo(devices) +
                " of the configuration, found " + std::to_string(device);
        return false;
      }
      if (seen[device]) {
        error = "expected each device to hold one shard, found device " +
                std::to_string(device) + " twice";
        return false;
      }
      seen[device] = true;
      ++count;
    }
    std::sort(holders.begin(), holders.end());
    placement.holders.push_back(std::move(holders));
  }
  if (count == devices) return true;
  error = "expected a shard on each of the " + std::to_string(devices) +
          " devices of the configuration (a copy, where it is not divided "
          "further), found " +
          std::to_string(count) +
          " devices; tensors on some of the devices "
          "are not supported";
  return false;
}

}  // namespace partita::onnx
