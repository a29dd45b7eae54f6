// Where the time of a run goes.
#ifndef PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
#define PARTITA_RUNTIME_EXECUTOR_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::executor {

// What a step does, for the table: steps of equal name are added up.
struct StepLabel {
  std::string name;
  double flops = 0;
  double bytes = 0;  // read and written, counting each operand once
};

struct ProfileRow {
  std::string name;
  int64_t calls = 0;
  double milliseconds = 0;         // mean of the runs
  double median_milliseconds = 0;  // of the runs
  double flops = 0;
  double bytes = 0;
};

// Time of steps, by name and run.
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
  // A table for people.
  std::string ToString() const;

 private:
  std::vector<ProfileRow> names_;           // each once, without times
  std::vector<size_t> name_of_;             // [step], in names_
  std::vector<int64_t> nanoseconds_;        // [step], of the run under way
  std::vector<std::vector<int64_t>> runs_;  // [name][run]
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
