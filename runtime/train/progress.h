// How a run goes, for people: on a terminal one line that changes, elsewhere a
// line now and then.
#ifndef PARTITA_RUNTIME_TRAIN_PROGRESS_H_
#define PARTITA_RUNTIME_TRAIN_PROGRESS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "runtime/train/record.h"

namespace partita::train {

struct ProgressOptions {
  int64_t steps = 0;          // at which the run ends
  bool terminal = false;      // whether `out` is one
  double interval = 10;       // seconds of steps between lines elsewhere
  double flops_per_step = 0;  // of all devices; 0: not known
  double peak_flops = 0;      // per second, of all devices; 0: not known
};

// "832", "25.6k", "1.20M", "3.40G", "5.60T": three digits; `gap` stands before
// the unit.
std::string FormatShort(double value, const std::string& gap = "");
// "42 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
std::string FormatDuration(double seconds);

// Speeds are averages of which each step is a tenth; the first step of a
// session, which is slower, is left out as soon as there are others.
class Progress : public Observer {
 public:
  Progress(std::ostream& out, const ProgressOptions& options)
      : out_(out), options_(options) {}
  // Ends the line that changes.
  ~Progress() override;

  absl::Status OnStep(const StepRecord& record) override;
  // A line of its own, now.
  void Say(const std::string& text);

 private:
  std::string Line(const StepRecord& record) const;

  std::ostream& out_;
  const ProgressOptions options_;
  int64_t seen_ = 0;
  double average_ = 0;  // seconds per step
  double since_ = 0;    // seconds of steps since the last line
  bool open_ = false;   // the cursor stands behind a line that changes
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_PROGRESS_H_
