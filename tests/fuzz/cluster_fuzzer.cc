// Fuzzes a user's cluster file. Any text is refused with a message, or is read,
// valid, and unchanged when written and read again; its prices are finite
// numbers.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/planner/cost/cost.h"

using namespace partita::planner;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Cluster> cluster = ReadCluster(text, "fuzz");
  if (!cluster.ok()) {
    if (cluster.status().message().empty()) abort();
    const absl::StatusOr<Cluster> named = BuiltInCluster(text);
    if (named.ok() ? !CheckCluster(*named).ok()
                   : named.status().message().empty())
      abort();
    return 0;
  }
  if (!CheckCluster(*cluster).ok()) abort();
  const std::string written = WriteCluster(*cluster);
  const absl::StatusOr<Cluster> again = ReadCluster(written, "written");
  if (!again.ok() || WriteCluster(*again) != written) abort();
  const double time =
      CollectiveTime(*cluster, partita::core::CollectiveKind::kAllReduce, 1e6,
                     ShapeOfStride(*cluster, 1, cluster->devices));
  if (std::isnan(time) || time < 0) abort();
  if (std::isnan(TransferTime(*cluster, 0, cluster->devices - 1, 1e6))) abort();
  return 0;
}
