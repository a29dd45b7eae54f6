// The number of processors that threads of this process can use.
#ifndef PARTITA_RUNTIME_BASE_PROCESSORS_H_
#define PARTITA_RUNTIME_BASE_PROCESSORS_H_

#include <string>

namespace partita::base {

// Processors in this process's affinity mask, which launchers set for each
// process that they bind. At least 1.
int AffinityProcessors();

// Processors that all processes of this machine or container share: the online
// ones, or the cgroup's share of time if that is smaller (cpu.max, or
// cpu.cfs_quota_us of version 1), rounded up. At least 1.
int MachineProcessors();

// The smaller of the two: how many threads of this process run at a time.
int AvailableProcessors();

// The limit that `cgroups`, the text of /proc/self/cgroup, and the files below
// `root` ("/sys/fs/cgroup") set, in processors, rounded up; 0 if there is none.
int CgroupProcessors(const std::string& cgroups, const std::string& root);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_PROCESSORS_H_
