// Chooses one of three programs per step.
#include "runtime/session/zero_one.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::session {
namespace {

using train::ZeroOneStep;

// A state of steps with local updates (compiler/autodiff/zero_one_adam.h).
constexpr char kRateSum[] = "zero_one_adam/rate_sum";

bool Has(const executor::RankGroup& ranks, const std::string& ending) {
  for (const executor::ParameterSpec& parameter : ranks.parameters())
    if (absl::EndsWith(parameter.whole.name, ending)) return true;
  return false;
}

// True if devices have momenta of their own, one row each.
bool HasRows(const executor::RankGroup& ranks) {
  std::map<std::string, size_t> ranks_of;
  for (const executor::ParameterSpec& parameter : ranks.parameters())
    ranks_of[parameter.whole.name] = parameter.whole.shape.size();
  for (const auto& [name, rank] : ranks_of) {
    const std::string ending = "/local_exp_avg";
    if (!absl::EndsWith(name, ending)) continue;
    const auto whole = ranks_of.find(absl::StrCat(
        name.substr(0, name.size() - ending.size()), "/exp_avg_sq"));
    if (whole != ranks_of.end()) return rank > whole->second;
  }
  return false;
}

absl::Status CheckKinds(const executor::RankGroup& exchange,
                        const executor::RankGroup& variance,
                        const executor::RankGroup& local) {
  const std::string errors = "/sum_worker_error";
  const auto wrong = [](ZeroOneStep step) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", ZeroOnePath("the folder", step),
        " to be that step of 0/1 Adam, found another program; compile the "
        "model again, to a new folder"));
  };
  if (!Has(exchange, kRateSum) || Has(exchange, errors) != HasRows(exchange))
    return wrong(ZeroOneStep::kExchange);
  if (!Has(local, kRateSum) || Has(local, errors))
    return wrong(ZeroOneStep::kLocal);
  if (Has(variance, kRateSum) || !Has(variance, "/local_exp_avg"))
    return wrong(ZeroOneStep::kVariance);
  return absl::OkStatus();
}

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

absl::Status CheckResumedSchedule(executor::RankGroup& ranks,
                                  const train::ZeroOneSchedule& schedule,
                                  int64_t last_step) {
  if (train::KindOf(schedule, last_step + 1) != ZeroOneStep::kVariance)
    return absl::OkStatus();
  for (const executor::ParameterSpec& parameter : ranks.parameters()) {
    if (parameter.whole.name != kRateSum) continue;
    const executor::RankGroup::Part part = ranks.PartOf(parameter);
    if (part.runs.empty()) continue;
    float sum = 0;
    if (part.spec.bytes != sizeof(sum))
      return absl::InternalError(absl::StrCat(kRateSum, " is no f32 scalar"));
    PARTITA_RETURN_IF_ERROR(ranks.ReadPart(part, &sum));
    if (sum != 0)
      return absl::FailedPreconditionError(absl::StrCat(
          "expected the schedule with which the checkpoint of step ", last_step,
          " was made, in which the devices step on their own until the next "
          "exchange, found one whose step ",
          last_step + 1,
          " updates the variance; resume with the same --steps, --warmup, "
          "--variance-until, --variance-doubling, --local-limit and "
          "--local-doubling, or from a checkpoint of an exchange"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ZeroOneStepper>> ZeroOneStepper::Make(
    executor::RankGroup& exchange, executor::RankGroup& variance,
    executor::RankGroup& local, const train::ZeroOneSchedule& schedule,
    bool traced, const std::function<void(const std::string&)>& say) {
  PARTITA_RETURN_IF_ERROR(CheckKinds(exchange, variance, local));
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
