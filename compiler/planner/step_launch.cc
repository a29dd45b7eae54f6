// The cost model's functions, by kind.
#include "compiler/planner/step_launch.h"

#include <algorithm>

namespace partita::planner {
namespace {

double ComputeTime(const Device& device, const StepLaunch& launch) {
  const Precision precision = ComputedIn(device, launch.precision);
  switch (launch.kind) {
    case StepLaunch::Kind::kProduct:
      return MatmulTime(device, precision, launch.batch, launch.m, launch.n,
                        launch.k, launch.form);
    case StepLaunch::Kind::kConvolution:
      return ConvolutionTime(device, precision, launch.convolution);
    case StepLaunch::Kind::kAttention:
      return KernelTime(device, precision, launch.bytes, launch.operations,
                        launch.backward);
    case StepLaunch::Kind::kStream:
    case StepLaunch::Kind::kCollective:
      break;
  }
  return MemoryBoundTime(device, launch.bytes);
}

}  // namespace

double UpdateLaunchTime(const Device& device, double bytes) {
  const double seconds = UpdateTime(device, bytes);
  return device.is_gpu ? std::max(seconds, device.launch)
                       : seconds - device.kernel;
}

double LaunchTime(const Cluster& cluster, const StepLaunch& launch) {
  // Nothing leaves the device where it is alone, but it is copied.
  if (launch.kind == StepLaunch::Kind::kCollective &&
      launch.collective != core::CollectiveKind::kAllSlice &&
      launch.ranks.size() > 1)
    return CollectiveTime(cluster, launch.collective, launch.bytes,
                          launch.ranks);
  if (launch.updates) return UpdateLaunchTime(cluster.device, launch.bytes);
  const double seconds = ComputeTime(cluster.device, launch);
  return launch.kind == StepLaunch::Kind::kCollective
             ? seconds
             : std::max(seconds, cluster.device.launch);
}

StepParts PartsOfStep(const Cluster& cluster,
                      const std::vector<StepLaunch>& step) {
  StepParts parts;
  double hiding = 0;
  for (const StepLaunch& launch : step) {
    const double own = LaunchTime(cluster, launch);
    if (launch.kind == StepLaunch::Kind::kCollective) {
      (launch.beside ? parts.gradients : parts.collectives) += own;
      continue;
    }
    parts.compute += own;
    if (launch.beside && cluster.device.overlaps) hiding += own;
  }
  parts.gradients = std::max(0.0, parts.gradients - hiding);
  return parts;
}

}  // namespace partita::planner
