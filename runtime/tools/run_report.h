// Reports of partita-run: readable tables, or one JSON object.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_REPORT_H_
#define PARTITA_RUNTIME_TOOLS_RUN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/tools/host_tensor.h"

namespace partita::tools {

struct RunReport {
  std::string model;
  std::string device;
  int devices = 1;
  double load_ms = 0;
  std::vector<double> times_ms;
  double cpu_ms = 0;  // mean processor time of this process per run
  int64_t steps = 0;
  executor::MemoryUse memory;
  std::vector<executor::RankUse> ranks;  // of a pipeline; else empty
  int64_t peak_process_bytes = 0;        // resident set, mapped files included
  std::vector<std::string> warnings;     // RankGroup::Warnings
  // One per entry; empty without --profile.
  std::vector<executor::Profile*> profiles;
  // Speeds of the machine, summed over its devices; null: unknown.
  std::optional<executor::MachineLimits> limits;
};

double Median(std::vector<double> values);

std::string ToTables(const RunReport& report,
                     const std::vector<HostTensor>& outputs);
std::string ToJson(const RunReport& report,
                   const std::vector<HostTensor>& outputs);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_REPORT_H_
