// Trains with the steps of 0/1 Adam: three programs that share their states.
#ifndef PARTITA_RUNTIME_SESSION_ZERO_ONE_H_
#define PARTITA_RUNTIME_SESSION_ZERO_ONE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/session/rank_stepper.h"
#include "runtime/train/zero_one_schedule.h"

namespace partita::session {

// True if the model is a folder that `partita compile --train 0/1-adam` wrote.
bool IsZeroOne(const std::string& model);

// The artifact of a kind of step in such a folder. The others use the states of
// kExchange.
std::string ZeroOnePath(const std::string& folder, train::ZeroOneStep step);

// After Resume: FailedPrecondition if devices differ, because the last step was
// a local one, but the schedule's next step updates the variance. `ranks` run
// kExchange.
absl::Status CheckResumedSchedule(executor::RankGroup& ranks,
                                  const train::ZeroOneSchedule& schedule,
                                  int64_t last_step);

// Runs the program that the schedule chooses for each step.
class ZeroOneStepper : public train::Stepper {
 public:
  // The ranks of the three programs must outlive this object; those of
  // `variance` and `local` use the states of `exchange`. InvalidArgument if
  // they are not the steps of these kinds, or their inputs or outputs differ.
  // Other arguments: as for RankStepper.
  static absl::StatusOr<std::unique_ptr<ZeroOneStepper>> Make(
      executor::RankGroup& exchange, executor::RankGroup& variance,
      executor::RankGroup& local, const train::ZeroOneSchedule& schedule,
      bool traced, const std::function<void(const std::string&)>& say);

  const std::vector<base::TensorSpec>& inputs() const override {
    return exchange_.inputs();
  }
  const std::vector<base::TensorSpec>& outputs() const override {
    return exchange_.outputs();
  }
  program::PortRole RoleOf(size_t input) const override {
    return exchange_.RoleOf(input);
  }
  // Reads the step from the input of that role.
  absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                   const std::vector<base::MutableTensor>& outputs) override;
  bool IsMain() const override { return exchange_.IsMain(); }
  absl::Status Agree(const absl::Status& status) override {
    return exchange_.Agree(status);
  }
  absl::Status Max(std::vector<double>& values) override {
    return exchange_.Max(values);
  }

 private:
  ZeroOneStepper(executor::RankGroup& exchange, executor::RankGroup& variance,
                 executor::RankGroup& local,
                 const train::ZeroOneSchedule& schedule, bool traced,
                 const std::function<void(const std::string&)>& say)
      : schedule_(schedule),
        exchange_(exchange, traced, say),
        variance_(variance, traced, say),
        local_(local, traced, say) {}

  const train::ZeroOneSchedule schedule_;
  RankStepper exchange_, variance_, local_;
};

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_ZERO_ONE_H_
