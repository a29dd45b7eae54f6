// Makes small changes to a plan: sizes of axes, fields, an entry.
#include "compiler/driver/planning/vary_plan.h"

#include <algorithm>
#include <optional>
#include <string>

#include "compiler/driver/planning/batch_parts.h"
#include "compiler/driver/planning/fixed_choices.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/plan/without_depth.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace partita::driver {
namespace {

using plan::Plan;

constexpr char kPipe[] = "pipe";
// Microbatches per stage of a new pipeline.
constexpr int64_t kMicrobatchesOfStage = 4;

bool isWhole(const core::AxisRef& ref, const core::Mesh& mesh) {
  return ref.pre == 1 && ref.size == mesh.axes[ref.axis].size;
}

// The planner's own plans divide by whole axes only.
bool hasWholeAxes(const Plan& plan) {
  return plan.overrides.empty() &&
         llvm::all_of(plan.shard, [&](const plan::Entry& entry) {
           return llvm::all_of(
               entry.dimensions, [&](const plan::ShardedDimension& division) {
                 return llvm::all_of(division.axes,
                                     [&](const core::AxisRef& ref) {
                                       return isWhole(ref, plan.mesh);
                                     });
               });
         });
}

std::optional<int> findAxis(const Plan& plan, llvm::StringRef name) {
  for (auto [i, axis] : llvm::enumerate(plan.mesh.axes))
    if (axis.name == name) return static_cast<int>(i);
  return std::nullopt;
}

int64_t sizeOf(const Plan& plan, llvm::StringRef name) {
  const std::optional<int> axis = findAxis(plan, name);
  return axis ? plan.mesh.axes[*axis].size : 1;
}

// Adds a slowest axis, which divides depth.
void addPipe(Plan& plan, int64_t size, const planner::FixedChoices& fixed) {
  plan.mesh.axes.insert(plan.mesh.axes.begin(), {kPipe, size});
  for (plan::Entry& entry : plan.shard)
    for (plan::ShardedDimension& division : entry.dimensions)
      for (core::AxisRef& ref : division.axes) ++ref.axis;
  if (plan.shard.empty() || plan::IsScoped(plan.shard.front()))
    plan.shard.insert(plan.shard.begin(), plan::Entry());
  plan.shard.front().dimensions.push_back(
      {"D", {core::WholeAxis(plan.mesh, 0)}, {}});
  plan.schedule = scheduleOf(fixed);
}

// Moves half of axis `from` to axis `to`; "pipe" may be new.
std::optional<Plan> moveHalf(const Plan& plan, const std::string& from,
                             const std::string& to,
                             const planner::FixedChoices& fixed) {
  Plan moved = plan;
  const std::optional<int> source = findAxis(moved, from);
  if (!source || moved.mesh.axes[*source].size % 2 != 0) return std::nullopt;
  const std::optional<int> target = findAxis(moved, to);
  if (!target && to != kPipe) return std::nullopt;
  if (target)
    plan::ResizeAxis(moved, *target, 2 * moved.mesh.axes[*target].size);
  plan::ResizeAxis(moved, *source, moved.mesh.axes[*source].size / 2);
  if (!target) addPipe(moved, 2, fixed);
  moved.stages.clear();
  if (sizeOf(moved, kPipe) == 1) moved.schedule.reset();
  // ZeRO divides over the axes of B, of which there may be none now.
  if (batchParts(moved) == 1) moved.zero = 0;
  return moved;
}

// Doubles `count` while it is below `most` and still divides the samples.
int64_t microbatchesOf(int64_t samples, int64_t most, int64_t count = 1) {
  while (count < most && samples % (2 * count) == 0) count *= 2;
  return count;
}

class Variations {
 public:
  Variations(const Plan& plan, int64_t batch,
             const planner::FixedChoices& fixed, bool offloads)
      : plan_(plan), batch_(batch), fixed_(fixed), offloads_(offloads) {}

  std::vector<Plan> run() {
    addRecomputations();
    addMicrobatches();
    addZero();
    addOffload();
    addRing();
    if (hasWholeAxes(plan_)) {
      if (!fixed_.sequence_parallel) addSequence();
      addMeshes();
    }
    llvm::erase_if(made_, [&](const Plan& plan) {
      return !keepsTo(plan, fixed_, batch_);
    });
    return std::move(made_);
  }

 private:
  void addRecomputations() {
    if (fixed_.recompute || plan_.recompute.size() > 1) return;
    const plan::RecomputePolicy current =
        plan_.recompute.empty() ? plan::RecomputePolicy::kSelective
                                : plan_.recompute.front().policy;
    for (const plan::RecomputePolicy policy :
         {plan::RecomputePolicy::kNone, plan::RecomputePolicy::kSelective,
          plan::RecomputePolicy::kFull}) {
      if (policy == current) continue;
      Plan changed = plan_;
      changed.recompute.clear();
      if (policy != plan::RecomputePolicy::kSelective)
        changed.recompute = {plan::Recompute{policy, {}, {}}};
      made_.push_back(std::move(changed));
    }
  }

  void addMicrobatches() {
    if (fixed_.microbatch) return;
    const int64_t samples = batch_ / std::max<int64_t>(batchParts(plan_), 1);
    for (const int64_t count :
         {plan_.microbatches * 2, plan_.microbatches / 2}) {
      if (count < 1 || samples % count != 0) continue;
      Plan changed = plan_;
      changed.microbatches = count;
      made_.push_back(std::move(changed));
    }
  }

  void addZero() {
    if (fixed_.zero || batchParts(plan_) == 1) return;
    for (const int64_t zero : {plan_.zero + 1, plan_.zero - 1}) {
      if (zero < 0 || zero > 3) continue;
      Plan changed = plan_;
      changed.zero = zero;
      made_.push_back(std::move(changed));
    }
  }

  // Moves the optimizer's states to the host or back to the devices.
  void addOffload() {
    const bool on_host = plan_.offload == plan::Offload::kOptimizer;
    if (fixed_.offload || (!on_host && !offloads_)) return;
    Plan changed = plan_;
    changed.offload =
        on_host ? plan::Offload::kNone : plan::Offload::kOptimizer;
    made_.push_back(std::move(changed));
  }

  // Passes keys and values around a ring, or what moves fewer bytes.
  void addRing() {
    if (sizeOf(plan_, "context") == 1) return;
    Plan changed = plan_;
    if (changed.attention)
      changed.attention.reset();
    else
      changed.attention = plan::LongAttention::kRing;
    made_.push_back(std::move(changed));
  }

  // Adds L: tensor after M and N, or removes it.
  void addSequence() {
    const std::optional<int> tensor = findAxis(plan_, "tensor");
    const auto divides = [&](llvm::StringRef name) {
      return [=](const plan::Entry& entry) {
        return llvm::any_of(entry.dimensions,
                            [&](const plan::ShardedDimension& division) {
                              return division.dimension == name && tensor &&
                                     division.axes.front().axis == *tensor;
                            });
      };
    };
    if (!tensor || !llvm::any_of(plan_.shard, divides("N")) ||
        llvm::any_of(plan_.shard, plan::IsScoped))
      return;
    Plan changed = plan_;
    if (llvm::any_of(plan_.shard, divides("L"))) {
      llvm::erase_if(changed.shard, divides("L"));
    } else {
      plan::Entry entry;
      entry.dimensions.push_back(
          {"L", {core::WholeAxis(changed.mesh, *tensor)}, {}});
      changed.shard.push_back(std::move(entry));
    }
    made_.push_back(std::move(changed));
  }

  void addMeshes() {
    const bool pipes = !fixed_.pp && !fixed_.vpp;
    const auto add = [&](const std::string& from, const std::string& to) {
      std::optional<Plan> moved = moveHalf(plan_, from, to, fixed_);
      if (!moved || batch_ % batchParts(*moved) != 0) return;
      if (fixed_.microbatch) {
        applyFixed(fixed_, batch_, *moved);
      } else if (to == kPipe) {
        const int64_t stages = sizeOf(*moved, kPipe);
        const int64_t samples = batch_ / batchParts(*moved);
        moved->microbatches = microbatchesOf(
            samples, kMicrobatchesOfStage * stages, moved->microbatches);
      }
      made_.push_back(*std::move(moved));
    };
    if (!fixed_.tp && !fixed_.dp) {
      add("tensor", "data");
      add("data", "tensor");
    }
    if (!pipes) return;
    if (!fixed_.dp) {
      add(kPipe, "data");
      add("data", kPipe);
    }
    if (!fixed_.tp) {
      add(kPipe, "tensor");
      add("tensor", kPipe);
    }
  }

  const Plan& plan_;
  const int64_t batch_;
  const planner::FixedChoices& fixed_;
  const bool offloads_;
  std::vector<Plan> made_;
};

}  // namespace

std::vector<Plan> variationsOf(const Plan& plan, int64_t batch,
                               const planner::FixedChoices& fixed,
                               bool offloads) {
  return Variations(plan, batch, fixed, offloads).run();
}

Plan withPipeline(Plan plan, int64_t stages, int64_t batch,
                  const planner::FixedChoices& fixed) {
  addPipe(plan, stages, fixed);
  plan.microbatches =
      microbatchesOf(batch / batchParts(plan), kMicrobatchesOfStage * stages);
  applyFixed(fixed, batch, plan);
  return plan;
}

std::vector<Plan> pipelinesLike(const Plan& like, int64_t batch,
                                const planner::FixedChoices& fixed) {
  std::vector<Plan> made;
  const int64_t devices = like.mesh.Size();
  for (int64_t stages = 2; stages <= devices; stages *= 2) {
    const int64_t data = devices / stages;
    if (devices % stages != 0 || batch % data != 0) continue;
    Plan plan;
    plan.precision = like.precision;
    if (data > 1) {
      plan.mesh.axes.push_back({"data", data});
      plan.shard.push_back(plan::Entry());
      plan.shard.front().dimensions.push_back(
          {"B", {core::WholeAxis(plan.mesh, 0)}, {}});
      plan.zero = 1;
    }
    plan = withPipeline(std::move(plan), stages, batch, fixed);
    if (keepsTo(plan, fixed, batch)) made.push_back(std::move(plan));
  }
  return made;
}

std::string describePlan(const Plan& plan) {
  std::string text;
  for (const core::Axis& axis : plan.mesh.axes)
    text += (text.empty() ? "" : " x ") + axis.name + " " +
            std::to_string(axis.size);
  const char* before = ": ";
  for (const plan::Entry& entry : plan.shard) {
    std::string names, axes;
    const auto flush = [&] {
      if (!names.empty()) text += before + names + axes;
      if (!names.empty()) before = ", ";
      names.clear();
    };
    for (const plan::ShardedDimension& division : entry.dimensions) {
      std::string division_axes;
      for (const core::AxisRef& ref : division.axes)
        division_axes += " " + plan.mesh.axes[ref.axis].name;
      if (division_axes != axes) flush();
      axes = division_axes;
      names += (names.empty() ? "" : " ") + division.dimension;
    }
    flush();
    for (size_t i = 0; i < entry.at.size(); ++i)
      text += (i == 0 ? " at " : " and ") + entry.at[i];
  }
  if (plan.microbatches > 1)
    text += "; " + std::to_string(plan.microbatches) + " microbatches";
  if (plan.schedule)
    text += "; " +
            (plan.schedule->kind == plan::ScheduleKind::kInterleaved
                 ? "interleaved(" + std::to_string(plan.schedule->chunks) + ")"
                 : plan::NameOf(plan::ScheduleNames(), plan.schedule->kind));
  if (plan.attention)
    text +=
        "; attention " + plan::NameOf(plan::AttentionNames(), *plan.attention);
  if (plan.zero > 0) text += "; zero " + std::to_string(plan.zero);
  if (plan.offload == plan::Offload::kOptimizer)
    text += "; optimizer states on the host";
  for (const plan::Recompute& rule : plan.recompute)
    text += "; recompute " + plan::NameOf(plan::RecomputeNames(), rule.policy);
  if (plan.precision)
    text += "; " + plan::NameOf(plan::PrecisionNames(), *plan.precision);
  return text;
}

}  // namespace partita::driver
