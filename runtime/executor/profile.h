// Measures the time of each kind of step.
#ifndef PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
#define PARTITA_RUNTIME_EXECUTOR_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace partita::executor {

// Name, layer and cost of a step. One table adds up steps of equal name,
// another one steps of the same layer.
struct StepLabel {
  std::string name;
  std::string layer;  // path of its module; empty: unknown
  double flops = 0;
  std::string precision;  // element type of a library operation, e.g. "f32"
  double bytes = 0;       // bytes read and written, counting each operand once
};

// Upper bounds on the speed of one device; 0 or absent: unknown.
struct MachineLimits {
  std::map<std::string, double> flops;  // FLOP/s of products, by element type
  double memory = 0;                    // bytes/s
};

struct ProfileRow {
  std::string name;
  int64_t calls = 0;
  double milliseconds = 0;         // mean over runs
  double median_milliseconds = 0;  // over runs
  double flops = 0;
  double bytes = 0;
  std::string precision;  // of its first step
};

// Returns the layer of a module: "h.0" for "h.0.mlp.up". It ends behind the
// first number, or behind the second if one word stands between them, as in
// "stages.1.blocks.0". Paths without numbers are layers themselves.
std::string LayerOf(const std::string& path);

// Times of groups of steps by run.
class StepTotals {
 public:
  // `groups` has the name of each step's group.
  StepTotals(const std::vector<StepLabel>& labels,
             const std::vector<std::string>& groups);

  // Adds a run with these times of steps.
  void CountRun(const std::vector<int64_t>& nanoseconds);
  void Reset();
  // Per run, most expensive first.
  std::vector<ProfileRow> Rows() const;

 private:
  std::vector<ProfileRow> groups_;          // without times
  std::vector<size_t> group_of_;            // step -> index in groups_
  std::vector<std::vector<int64_t>> runs_;  // indexed by group, then run
};

// Times of steps by name and by layer.
class Profile {
 public:
  explicit Profile(const std::vector<StepLabel>& labels);

  void Add(int64_t step, int64_t nanoseconds) {
    nanoseconds_[static_cast<size_t>(step)] += nanoseconds;
  }
  void CountRun();
  void Reset();

  // Per run, most expensive first: by name, and by layer. Steps of unknown
  // layers have an empty name in the second list.
  std::vector<ProfileRow> Rows() const { return by_name_.Rows(); }
  std::vector<ProfileRow> LayerRows() const { return by_layer_.Rows(); }
  // Readable tables. The table of layers is left out if no layer is known. With
  // `limits`, rows have their shares of the device's limits.
  std::string ToString(const MachineLimits* limits = nullptr) const;

 private:
  std::vector<int64_t> nanoseconds_;  // per step, of the current run
  StepTotals by_name_, by_layer_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_PROFILE_H_
