// What a profile says that operations took.
#ifndef PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_
#define PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace partita::measure {

// Of the first device, or of the first of each place in a pipeline.
class ProfileTimes {
 public:
  // Reads what `partita-run --profile --json` prints: DataLoss if it is
  // something else.
  static absl::StatusOr<ProfileTimes> Parse(const std::string& json);

  // Seconds of one call of the operation that is called `label`, whatever the
  // profile adds behind it: the median of the runs. Internal if there is none.
  absl::StatusOr<double> Seconds(const std::string& label) const;

 private:
  std::map<std::string, double> seconds_;  // of one call
};

}  // namespace partita::measure

#endif  // PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_
