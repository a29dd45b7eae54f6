// Turns options into a plan, which compiler/plan checks.
#include "compiler/driver/plan_arguments.h"

#include "compiler/plan/names.h"
#include "compiler/plan/plan_schedule.h"

namespace partita::driver {
namespace {

absl::StatusOr<plan::Plan> Assemble(const PlanArguments& arguments,
                                    const std::vector<plan::Name>& names) {
  plan::Plan plan;
  plan.origin = "--shard";
  if (!arguments.mesh.empty()) {
    absl::StatusOr<core::Mesh> mesh = plan::ParseMeshOption(arguments.mesh);
    if (!mesh.ok()) return mesh.status();
    plan.mesh = *std::move(mesh);
  }
  plan.names = names;
  plan.zero = arguments.zero;
  plan.microbatches = arguments.microbatches;
  if (!arguments.schedule.empty()) {
    absl::StatusOr<plan::Schedule> schedule =
        plan::ParseSchedule(arguments.schedule);
    if (!schedule.ok())
      return absl::InvalidArgumentError(
          "--schedule: " + std::string(schedule.status().message()));
    plan.schedule = *std::move(schedule);
  }
  auto precision = arguments.FindPrecision();
  if (!precision.ok()) return precision.status();
  plan.precision = *precision;
  if (!arguments.attention.empty()) {
    absl::StatusOr<plan::LongAttention> attention =
        plan::ParseAttentionOption(arguments.attention);
    if (!attention.ok()) return attention.status();
    plan.attention = *attention;
  }
  if (!arguments.experts.empty()) {
    absl::StatusOr<plan::Experts> experts =
        plan::ParseExpertsOption(arguments.experts);
    if (!experts.ok()) return experts.status();
    plan.experts = *experts;
  }
  if (!arguments.shard.empty()) {
    absl::StatusOr<std::vector<plan::Entry>> entries =
        plan::ParseShardOption(arguments.shard, plan.mesh);
    if (!entries.ok()) return entries.status();
    plan.shard = *std::move(entries);
  }
  absl::Status checked = plan::CheckPlan(plan);
  if (!checked.ok()) return checked;
  return plan;
}

}  // namespace

absl::StatusOr<std::optional<plan::Precision>> PlanArguments::FindPrecision()
    const {
  if (precision.empty()) return std::optional<plan::Precision>();
  for (const auto& [word, meaning] : plan::PrecisionNames())
    if (word == precision) return std::optional<plan::Precision>(meaning);
  return absl::InvalidArgumentError(
      "--precision: expected f32, bf16, f16 or f8, found '" + precision + "'");
}

absl::StatusOr<std::vector<plan::Recompute>> PlanArguments::FindRecompute()
    const {
  if (recompute.empty()) return std::vector<plan::Recompute>();
  return plan::ParseRecomputeOption(recompute);
}

absl::StatusOr<std::optional<int64_t>> PlanArguments::FindMemory() const {
  if (memory.empty()) return std::optional<int64_t>();
  absl::StatusOr<int64_t> bytes = plan::ParseBytes(memory);
  if (!bytes.ok())
    return absl::InvalidArgumentError("--memory: " +
                                      std::string(bytes.status().message()));
  return std::optional<int64_t>(*bytes);
}

absl::StatusOr<std::optional<plan::Plan>> PlanArguments::Finish() const {
  if (plan_path.empty() && mesh.empty()) {
    if (!shard.empty())
      return absl::InvalidArgumentError(
          "--shard: expected --mesh beside it, which says what devices there "
          "are, as in --mesh data=2,tensor=2");
    if (zero > 0)
      return absl::InvalidArgumentError(
          "--zero: expected --mesh and --shard beside it, which divide B, as "
          "in --mesh data=2 --shard B=data");
    if (!schedule.empty())
      return absl::InvalidArgumentError(
          "--schedule: expected --mesh and --shard beside it, which divide D, "
          "as in --mesh pipe=2 --shard D=pipe");
    if (!attention.empty())
      return absl::InvalidArgumentError(
          "--attention: expected --mesh and --shard beside it, which divide L, "
          "as in --mesh seq=4 --shard L=seq");
    if (!experts.empty())
      return absl::InvalidArgumentError(
          "--experts: expected --mesh and --shard beside it, which divide X "
          "and B over one axis, as in --mesh data=4 --shard \"B=data;X=data\"");
    if (devices > 1)
      return absl::InvalidArgumentError(
          "--devices: expected a plan that says how to use them: --plan FILE, "
          "or --mesh and --shard");
    if (microbatches == 1) return std::optional<plan::Plan>();
  }
  if (!plan_path.empty() &&
      (!mesh.empty() || !shard.empty() || zero > 0 || microbatches > 1 ||
       !schedule.empty() || !precision.empty() || !recompute.empty() ||
       !attention.empty() || !experts.empty() || !memory.empty()))
    return absl::InvalidArgumentError(
        "expected either --plan or --mesh, --shard, --zero, --microbatches, "
        "--schedule, --precision, --recompute, --attention, --experts and "
        "--memory, found both; put them into " +
        plan_path);
  std::vector<plan::Name> parsed_names;
  for (const std::string& text : names) {
    absl::StatusOr<plan::Name> name = plan::ParseName(text);
    if (!name.ok())
      return absl::InvalidArgumentError("--name: " +
                                        std::string(name.status().message()));
    parsed_names.push_back(*std::move(name));
  }
  absl::StatusOr<plan::Plan> plan = plan_path.empty()
                                        ? Assemble(*this, parsed_names)
                                        : plan::ReadPlan(plan_path);
  const auto refuse = [&](const absl::Status& status) {
    return plan_path.empty() ? status
                             : absl::FailedPreconditionError(status.message());
  };
  if (!plan.ok()) return refuse(plan.status());
  if (!plan_path.empty())
    plan->names.insert(plan->names.end(), parsed_names.begin(),
                       parsed_names.end());
  absl::Status fine = plan::CheckPipeline(*plan);
  if (fine.ok() && devices > 0) fine = plan::CheckDeviceCount(*plan, devices);
  if (!fine.ok()) return refuse(fine);
  absl::StatusOr<plan::Plan> divided = plan::DivideStages(*plan);
  if (!divided.ok()) return refuse(divided.status());
  return std::optional<plan::Plan>(*std::move(divided));
}

}  // namespace partita::driver
