// Chooses one of three programs per step.
#include "runtime/session/zero_one.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace partita::session {
namespace {

using train::ZeroOneStep;

bool AreSame(const std::vector<base::TensorSpec>& a,
             const std::vector<base::TensorSpec>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].dtype != b[i].dtype ||
        a[i].shape != b[i].shape)
      return false;
  return true;
}

}  // namespace

std::string ZeroOnePath(const std::string& folder, ZeroOneStep step) {
  const char* const name = step == ZeroOneStep::kVariance   ? "variance"
                           : step == ZeroOneStep::kExchange ? "exchange"
                                                            : "local";
  return absl::StrCat(folder, "/", name, ".partita");
}

bool IsZeroOne(const std::string& model) {
  std::error_code error;
  return std::filesystem::is_regular_file(
      ZeroOnePath(model, ZeroOneStep::kExchange), error);
}

absl::StatusOr<std::unique_ptr<ZeroOneStepper>> ZeroOneStepper::Make(
    executor::RankGroup& exchange, executor::RankGroup& variance,
    executor::RankGroup& local, const train::ZeroOneSchedule& schedule,
    bool traced, const std::function<void(const std::string&)>& say) {
  for (executor::RankGroup* other : {&variance, &local})
    if (!AreSame(exchange.inputs(), other->inputs()) ||
        !AreSame(exchange.outputs(), other->outputs()))
      return absl::InvalidArgumentError(
          "expected three steps of 0/1 Adam with the same inputs and outputs, "
          "found others; compile the model again");
  std::unique_ptr<ZeroOneStepper> stepper(
      new ZeroOneStepper(exchange, variance, local, schedule, traced, say));
  for (size_t i = 0; i < stepper->inputs().size(); ++i)
    if (stepper->RoleOf(i) == program::PortRole::step) return stepper;
  return absl::InvalidArgumentError(
      "expected steps of 0/1 Adam with an input of the role 'step', found "
      "none; compile the model again");
}

absl::Status ZeroOneStepper::Run(
    const std::vector<base::ConstTensor>& inputs,
    const std::vector<base::MutableTensor>& outputs) {
  int64_t step = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (RoleOf(i) == program::PortRole::step)
      step = *static_cast<const int64_t*>(inputs[i].data);
  switch (train::KindOf(schedule_, step)) {
    case ZeroOneStep::kVariance:
      return variance_.Run(inputs, outputs);
    case ZeroOneStep::kLocal:
      return local_.Run(inputs, outputs);
    case ZeroOneStep::kExchange:
      break;
  }
  return exchange_.Run(inputs, outputs);
}

}  // namespace partita::session
