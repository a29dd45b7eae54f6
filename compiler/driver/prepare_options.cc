// Finds options of a compilation that exclude each other, before anything is
// compiled.
#include <filesystem>

#include "compiler/driver/compile.h"
#include "compiler/driver/targets.h"
#include "compiler/kernels/cpu_names.h"
#include "compiler/plan/plan_schedule.h"
#include "runtime/program/target.h"

namespace partita::driver {
namespace {

// Each of these functions returns an error, or an empty text.

std::string checkMicrobatches(const plan::Plan& plan) {
  if (plan.microbatches <= 1) return "";
  auto field = plan.fields.find("microbatches");
  return (field == plan.fields.end()
              ? "--microbatches"
              : plan::Where(plan, field->second) + ": microbatches") +
         ": expected 1 where nothing is trained, found " +
         std::to_string(plan.microbatches) +
         "; compile with --train, or leave it out";
}

std::string checkNoiseScale(const CompileOptions& options) {
  const std::string start = "--noise-scale: expected ";
  if (isZeroOne(options.train))
    return start +
           "another optimizer than 0/1-adam: it needs whole gradients, but "
           "devices step with their own; leave it out";
  const int64_t microbatches = options.plan ? options.plan->microbatches : 1;
  if (microbatches < 2)
    return start +
           "at least 2 microbatches, whose gradients differ, found 1; add "
           "--microbatches, or leave it out";
  if (options.plan && !plan::DepthAxes(*options.plan).empty())
    return start +
           "no pipeline, whose stages have parts of a gradient, found one; "
           "leave it out";
  if (options.plan->precision.value_or(options.precision) ==
      plan::Precision::kF16)
    return start +
           "f32 or bf16, found f16, whose gradients have a changing scale; "
           "leave it out";
  return "";
}

// Refuses options that need all gradients of a step, from all stages, before
// the next step begins.
std::string checkWithoutFlush(const CompileOptions& options,
                              const core::Schedule& schedule) {
  const bool newest =
      options.plan->schedule->kind == plan::ScheduleKind::kAsync;
  if (options.plan->precision.value_or(options.precision) ==
      plan::Precision::kF16)
    return "--precision f16: expected a schedule that waits for the end of a "
           "step, since the scale of a step's loss follows from the gradients "
           "of the step before, found one that does not; take bf16, or 1f1b";
  if (options.train.clip_norm > 0 && newest && schedule.microbatches > 1)
    return "--clip-norm: expected a schedule other than async with several "
           "microbatches: a stage computes with its newest weights, which "
           "follow from the norm of gradients that other stages do not have "
           "yet; leave it out, or take async-2bw or 1f1b";
  if (options.plan->offload == plan::Offload::kOptimizer)
    return "offload: optimizer: expected a schedule that waits for the end of "
           "a step, since others keep activations and weights as states, too, "
           "found one that does not; take none, or 1f1b";
  if (options.train.pipemare_correction > 0 && !newest)
    return "--pipemare-correction: expected --schedule async, whose gradients "
           "have weights of several ages, found another schedule; leave it out";
  // With more microbatches, no stage's weights are more than one update old.
  if (options.train.pipemare > 0 &&
      (!newest || schedule.microbatches >= schedule.stages - 1))
    return "--pipemare: expected --schedule async with fewer microbatches than "
           "stages behind the first (else no weights are more than one update "
           "old), found " +
           std::string(newest ? "async" : "another schedule") + " with " +
           std::to_string(schedule.microbatches) + " microbatches and " +
           std::to_string(schedule.stages) + " stages; leave it out";
  return "";
}

}  // namespace

std::string checkMachine(const CompileOptions& options) {
  if (std::string wrong = kernels::checkCpu(options.cpu); !wrong.empty())
    return "--cpu: " + wrong;
  return checkTarget(options.target);
}

std::string prepareOptions(const CompileOptions& options) {
  const bool trains = !options.train.optimizer.empty();
  if (options.plan && !trains)
    if (std::string wrong = checkMicrobatches(*options.plan); !wrong.empty())
      return wrong;
  if (options.train.noise_scale)
    if (std::string wrong = checkNoiseScale(options); !wrong.empty())
      return wrong;
  bool flushes = true;
  if (options.plan && !plan::DepthAxes(*options.plan).empty()) {
    auto schedule = plan::ScheduleOf(*options.plan, trains);
    if (!schedule.ok()) return std::string(schedule.status().message());
    flushes = schedule->flushes;
    if (!flushes && trains)
      if (std::string wrong = checkWithoutFlush(options, *schedule);
          !wrong.empty())
        return wrong;
  }
  if (flushes &&
      (options.train.pipemare > 0 || options.train.pipemare_correction > 0))
    return std::string(options.train.pipemare > 0 ? "--pipemare"
                                                  : "--pipemare-correction") +
           ": expected a pipeline with --schedule async, whose "
           "weights are old, found steps that wait for all updates before "
           "them; leave it out";
  if (std::string wrong = checkMachine(options); !wrong.empty()) return wrong;
  if (options.plan && options.plan->state_files &&
      program::IsGpuTarget(options.target))
    return "offload: expected optimizer: host with --target " + options.target +
           ", whose kernels need states in pinned memory, found nvme";
  if (options.cubins && !program::IsGpuTarget(options.target))
    return "--cubins: expected a target with PTX, as in --target cuda:sm_90, "
           "found " +
           options.target + "; leave it out";
  if (options.cubins)
    if (std::string wrong = checkCubins(*options.cubins); !wrong.empty())
      return wrong;
  std::error_code error;
  if (!options.dump_dir.empty())
    std::filesystem::create_directories(options.dump_dir, error);
  if (error)
    return "--dump-dir: expected a folder that can be made, found " +
           options.dump_dir + ": " + error.message();
  return "";
}

}  // namespace partita::driver
