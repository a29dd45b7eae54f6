// The machine-readable log of a run: one JSON object per line and step.
#ifndef PARTITA_RUNTIME_TRAIN_LOG_H_
#define PARTITA_RUNTIME_TRAIN_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/append_file.h"
#include "runtime/train/record.h"

namespace partita::train {

// {"step":1,"loss":2.5,"lr":0.001,"seconds":0.02,"examples":8,"tokens":512,
//  "examples_per_second":400.0,"tokens_per_second":25600.0,"grad_norm":1.2}
// Without tokens if the data is not text. Further outputs of the step appear
// under their names. Numbers that JSON cannot represent are null.
std::string ToJsonLine(const StepRecord& record);

// A line is written as soon as its step is done, and is complete even if the
// process is killed.
class JsonLog : public Observer {
 public:
  // The run continues after step `last_step`. Removes an incomplete line and
  // the lines of later steps, which a killed session left behind; keeps all
  // others. 0 empties the log. InvalidArgument if the file contains anything
  // but such lines; it is not changed then.
  static absl::StatusOr<std::unique_ptr<JsonLog>> Open(const std::string& path,
                                                       int64_t last_step);

  absl::Status OnStep(const StepRecord& record) override;

 private:
  explicit JsonLog(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<AppendFile> file_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_LOG_H_
