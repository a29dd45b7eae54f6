// Reads the affinity mask and the limits of cgroups.
#include "runtime/base/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

namespace partita::base {

int CgroupProcessors(const std::string& cgroups, const std::string& root) {
  double least = 0;
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0 && (least == 0 || quota / period < least))
      least = quota / period;
  };
  std::istringstream lines(cgroups);
  // A line is ID:CONTROLLERS:PATH; version 2 has neither ID nor controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    // A limit of any ancestor holds as well. In a container the path may not
    // exist below the mounted root, which is the container's own group then.
    for (std::string path = line.substr(second + 1);;
         path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      double quota = 0, period = 0;
      if (unified) {
        // "max 100000" has no number first, and so leaves quota 0.
        std::ifstream(root + path + "/cpu.max") >> quota >> period;
      } else {
        const std::string folder = root + "/cpu" + path;
        std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
        std::ifstream(folder + "/cpu.cfs_period_us") >> period;
      }
      limit(quota, period);
      if (path.empty() || path.find('/') == std::string::npos) break;
    }
  }
  const int whole = static_cast<int>(least);
  return whole < least ? whole + 1 : whole;
}

int AffinityProcessors() {
  // A mask that is too small for the machine is refused with EINVAL.
  for (int size = 1024; size <= 1 << 16; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<size_t>(size)),
        [](cpu_set_t* mask) { CPU_FREE(mask); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(size));
    if (set == nullptr || sched_getaffinity(0, bytes, set.get()) != 0) continue;
    return std::max(CPU_COUNT_S(bytes, set.get()), 1);
  }
  return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

int MachineProcessors() {
  const int online =
      std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
  std::ostringstream cgroups;
  cgroups << std::ifstream("/proc/self/cgroup").rdbuf();
  const int share = CgroupProcessors(cgroups.str(), "/sys/fs/cgroup");
  return share > 0 ? std::min(share, online) : online;
}

int AvailableProcessors() {
  return std::min(AffinityProcessors(), MachineProcessors());
}

}  // namespace partita::base
