// Compares plans with fixed choices. Axes are found by their names, which are
// the same in all plans of the planner.
#include "compiler/driver/planning/fixed_choices.h"

#include <optional>
#include <string>
#include <utility>

#include "compiler/driver/planning/batch_parts.h"
#include "compiler/planner/search/write_plan.h"

namespace partita::driver {
namespace {

using plan::ScheduleKind;
using planner::Recomputation;

int64_t sizeOf(const plan::Plan& plan, const char* axis) {
  const int index = plan.mesh.Find(axis);
  return index < 0 ? 1 : plan.mesh.axes[index].size;
}

// The number of devices among which the experts are divided.
int64_t expertParts(const plan::Plan& plan) {
  int64_t parts = 1;
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& each : entry.dimensions)
      if (each.dimension == "X") parts *= core::SizeOf(each.axes);
  return parts;
}

// Stages per rank.
int64_t chunksOf(const plan::Plan& plan) {
  if (!plan.schedule) return 1;
  if (plan.schedule->kind == ScheduleKind::kZbV) return 2;
  return plan.schedule->kind == ScheduleKind::kInterleaved
             ? plan.schedule->chunks
             : 1;
}

bool hasSchedule(const plan::Plan& plan, const planner::FixedChoices& fixed) {
  if (fixed.schedules.size() != 1 || sizeOf(plan, "pipe") == 1) return true;
  const ScheduleKind wanted = planner::KindOf(fixed.schedules.front());
  const ScheduleKind found =
      plan.schedule ? plan.schedule->kind : ScheduleKind::k1F1B;
  return found == wanted ||
         (wanted == ScheduleKind::k1F1B && found == ScheduleKind::kInterleaved);
}

absl::Status refuse(const std::string& name, int64_t found,
                    const std::string& expected) {
  return absl::InvalidArgumentError("--fix " + name + ": expected " + expected +
                                    ", found " + std::to_string(found));
}

}  // namespace

absl::Status checkFixedOfLayers(const planner::FixedChoices& fixed,
                                int64_t devices, int64_t batch) {
  if (fixed.cp || fixed.ep || fixed.sequence_parallel)
    return absl::InvalidArgumentError(
        std::string("--fix ") +
        (fixed.cp   ? "cp"
         : fixed.ep ? "ep"
                    : "sp") +
        ": expected tp, pp, dp, vpp, zero, mbs, offload, recompute or schedule "
        "for a model that is planned by its layers: leave it out");
  const std::pair<const char*, std::optional<int>> sizes[] = {
      {"tp", fixed.tp}, {"pp", fixed.pp}, {"dp", fixed.dp}};
  int64_t product = 1;
  for (const auto& [name, size] : sizes) {
    if (size && (*size < 1 || devices % *size != 0))
      return refuse(name, *size,
                    "a divisor of the " + std::to_string(devices) + " devices");
    product *= size.value_or(1);
  }
  const bool all = fixed.tp && fixed.pp && fixed.dp;
  if (devices % product != 0 || (all && product != devices))
    return refuse("tp x pp x dp", product,
                  (all ? "the " : "a divisor of the ") +
                      std::to_string(devices) + " devices");
  if (fixed.dp && batch % *fixed.dp != 0)
    return refuse(
        "dp", *fixed.dp,
        "a divisor of the batch's " + std::to_string(batch) + " samples");
  if (fixed.microbatch &&
      (*fixed.microbatch < 1 || batch % *fixed.microbatch != 0))
    return refuse(
        "mbs", *fixed.microbatch,
        "a divisor of the batch's " + std::to_string(batch) + " samples");
  if (fixed.zero && (*fixed.zero < 0 || *fixed.zero > 3))
    return refuse("zero", *fixed.zero, "0 to 3");
  if (fixed.zero.value_or(0) > 0 && (fixed.dp.value_or(2) == 1 || devices == 1))
    return refuse("zero", *fixed.zero,
                  "0 with dp=1, as ZeRO divides states over the devices that "
                  "divide the batch");
  const int64_t chunks = chunksOf([&] {
    plan::Plan pipeline;
    pipeline.schedule = scheduleOf(fixed);
    return pipeline;
  }());
  if (fixed.vpp && (*fixed.vpp < 1 || *fixed.vpp != chunks ||
                    (*fixed.vpp > 1 && fixed.pp.value_or(1) == 1)))
    return refuse("vpp", *fixed.vpp,
                  fixed.pp.value_or(1) == 1
                      ? "1 without pp=2 or more"
                      : "the " + std::to_string(chunks) +
                            " stages per rank of this schedule");
  return absl::OkStatus();
}

bool keepsTo(const plan::Plan& plan, const planner::FixedChoices& fixed,
             int64_t batch) {
  const std::pair<std::optional<int>, int64_t> sizes[] = {
      {fixed.tp, sizeOf(plan, "tensor")},
      {fixed.pp, sizeOf(plan, "pipe")},
      {fixed.dp, sizeOf(plan, "data") * sizeOf(plan, "expert")},
      {fixed.cp, sizeOf(plan, "context")},
      {fixed.ep, expertParts(plan)},
      {fixed.vpp, chunksOf(plan)},
      {fixed.zero, plan.zero}};
  for (const auto& [wanted, found] : sizes)
    if (wanted && *wanted != found) return false;
  if (fixed.offload &&
      *fixed.offload != (plan.offload == plan::Offload::kOptimizer))
    return false;
  if (fixed.microbatch &&
      batch != *fixed.microbatch * plan.microbatches * batchParts(plan))
    return false;
  if (fixed.recompute) {
    const plan::RecomputePolicy found = plan.recompute.empty()
                                            ? plan::RecomputePolicy::kSelective
                                            : plan.recompute.front().policy;
    if (plan.recompute.size() > 1 ||
        found != planner::PolicyOf(*fixed.recompute))
      return false;
  }
  return hasSchedule(plan, fixed);
}

void applyFixed(const planner::FixedChoices& fixed, int64_t batch,
                plan::Plan& plan) {
  if (fixed.zero && batchParts(plan) > 1) plan.zero = *fixed.zero;
  if (fixed.microbatch) {
    const int64_t samples = *fixed.microbatch * batchParts(plan);
    if (batch % samples == 0) plan.microbatches = batch / samples;
  }
  if (fixed.offload)
    plan.offload =
        *fixed.offload ? plan::Offload::kOptimizer : plan::Offload::kNone;
  if (!fixed.recompute) return;
  plan.recompute.clear();
  if (*fixed.recompute != Recomputation::kSelective)
    plan.recompute = {
        plan::Recompute{planner::PolicyOf(*fixed.recompute), {}, {}}};
}

plan::Schedule scheduleOf(const planner::FixedChoices& fixed) {
  plan::Schedule schedule;
  if (fixed.schedules.size() == 1)
    schedule.kind = planner::KindOf(fixed.schedules.front());
  if (schedule.kind == ScheduleKind::k1F1B && fixed.vpp.value_or(1) > 1) {
    schedule.kind = ScheduleKind::kInterleaved;
    schedule.chunks = *fixed.vpp;
  }
  return schedule;
}

}  // namespace partita::driver
