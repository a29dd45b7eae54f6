// The log of a run for programs: one JSON object per line and step.
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
// without tokens where the data is not text; further outputs of the step have
// their names. Numbers that JSON lacks are null.
std::string ToJsonLine(const StepRecord& record);

// A line is there as soon as its step is done, and whole whenever the process
// is killed.
class JsonLog : public Observer {
 public:
  // The run goes on after step `last_step`: lines of later steps, which a
  // killed session left behind, and half a line go; all others stay. 0 begins
  // anew. InvalidArgument where the file holds something else than such lines:
  // it is not touched then.
  static absl::StatusOr<std::unique_ptr<JsonLog>> Open(const std::string& path,
                                                       int64_t last_step);

  absl::Status OnStep(const StepRecord& record) override;

 private:
  explicit JsonLog(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<AppendFile> file_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_LOG_H_
