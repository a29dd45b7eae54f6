// Measures the tables of this machine.
#ifndef PARTITA_COMPILER_MEASURE_MEASURE_H_
#define PARTITA_COMPILER_MEASURE_MEASURE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/core/precision.h"
#include "compiler/measure/profile_times.h"
#include "compiler/planner/cluster/measured.h"

namespace partita::measure {

struct MeasureOptions {
  // Number of devices that share the machine. All of them work while one is
  // measured.
  int devices = 1;
  std::vector<core::Precision> precisions;  // of products: f32, bf16, f16
  // Fewer and smaller sizes, for tests.
  bool small = false;
  std::string folder;  // for programs; the caller creates and owns it
  // Executes an artifact and returns its profile.
  std::function<absl::StatusOr<ProfileTimes>(const std::string& artifact)> run;
  // Called before each measurement, which is step `number` of `count`.
  std::function<void(const std::string& what, int number, int count)> progress;
};

// Rounds to four digits, as measurements have; 0 if `value` is not positive.
double Rounded(double value);

// Measures products, convolutions in f32, collectives among 2, 4 ... devices,
// and messages. Returns errors of `run` and of the disk.
absl::StatusOr<planner::RateTables> MeasureTables(
    const MeasureOptions& options);

}  // namespace partita::measure

#endif  // PARTITA_COMPILER_MEASURE_MEASURE_H_
