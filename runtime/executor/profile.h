// Measures the time of each kind of step.
#ifndef PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
#define PARTITA_RUNTIME_EXECUTOR_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::executor {

// Name and cost of a step. The table adds up steps of equal name.
struct StepLabel {
  std::string name;
  double flops = 0;
  double bytes = 0;  // bytes read and written, counting each operand once
};

struct ProfileRow {
  std::string name;
  int64_t calls = 0;
  double milliseconds = 0;         // mean over runs
  double median_milliseconds = 0;  // over runs
  double flops = 0;
  double bytes = 0;
};

// Times of steps by name and run.
class Profile {
 public:
  explicit Profile(std::vector<StepLabel> labels);

  void Add(int64_t step, int64_t nanoseconds) {
    nanoseconds_[static_cast<size_t>(step)] += nanoseconds;
  }
  void CountRun();
  void Reset();

  // Per run, most expensive first.
  std::vector<ProfileRow> Rows() const;
  // A readable table.
  std::string ToString() const;

 private:
  std::vector<ProfileRow> names_;           // one row per name, without times
  std::vector<size_t> name_of_;             // step -> index in names_
  std::vector<int64_t> nanoseconds_;        // per step, of the current run
  std::vector<std::vector<int64_t>> runs_;  // indexed by name, then run
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
