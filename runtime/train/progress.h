// Shows the progress of a run: one updated line on a terminal, elsewhere a line
// from time to time.
#ifndef PARTITA_RUNTIME_TRAIN_PROGRESS_H_
#define PARTITA_RUNTIME_TRAIN_PROGRESS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "runtime/train/record.h"

namespace partita::train {

struct ProgressOptions {
  int64_t steps = 0;      // last step of the run
  bool terminal = false;  // `out` is a terminal
  double interval = 10;  // seconds of steps between lines, if not on a terminal
  double flops_per_step = 0;  // of all devices; 0: unknown
  double peak_flops = 0;      // per second, of all devices; 0: unknown
};

// "832", "25.6k", "1.20M", "3.40G", "5.60T": three digits, with `gap` before
// the unit.
std::string FormatShort(double value, const std::string& gap = "");
// "42 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
std::string FormatDuration(double seconds);

// Speeds are moving averages in which each step weighs a tenth. The slower
// first step of a session is left out once there are others.
class Progress : public Observer {
 public:
  Progress(std::ostream& out, const ProgressOptions& options)
      : out_(out), options_(options) {}
  // Ends the updated line.
  ~Progress() override;

  absl::Status OnStep(const StepRecord& record) override;
  // Prints a separate line at once.
  void Say(const std::string& text);

 private:
  std::string Line(const StepRecord& record) const;

  std::ostream& out_;
  const ProgressOptions options_;
  int64_t seen_ = 0;
  double average_ = 0;  // seconds per step
  double since_ = 0;    // seconds of steps since the last line
  bool open_ = false;   // the cursor is behind an updated line
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_PROGRESS_H_
