// Times of operations in a profile.
#ifndef PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_
#define PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace partita::measure {

// Times on the first device, or on the first device of each pipeline rank.
class ProfileTimes {
 public:
  // Reads the output of `partita-run --profile --json`. DataLoss if `json` is
  // something else.
  static absl::StatusOr<ProfileTimes> Parse(const std::string& json);

  // Seconds of one call of the operation `label`: the median of the runs. The
  // profile may add text behind the label. Internal if there is no such
  // operation.
  absl::StatusOr<double> Seconds(const std::string& label) const;

 private:
  std::map<std::string, double> seconds_;  // of one call
};

}  // namespace partita::measure

#endif  // PARTITA_COMPILER_MEASURE_PROFILE_TIMES_H_
