// Traces non-finite numbers: registers a run's sources and outcomes.
#include "absl/strings/str_cat.h"
#include "runtime/executor/block_map.h"
#include "runtime/executor/executor.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

// True if any step gives the types of its outputs.
bool TellsTypes(const program::Program& program) {
  for (const program::Function* function : *program.functions())
    for (int64_t i = 0; i < program::SizeOrZero(function->body()); ++i)
      if (function->body()->Get(static_cast<unsigned>(i))->output_types() !=
          nullptr)
        return true;
  return false;
}

}  // namespace

absl::Status Executor::EnableNanTrace() {
  if (!device_.SharesHostMemory() || !device_.KeepsContent())
    return absl::FailedPreconditionError(absl::StrCat(
        "numbers can be traced on devices whose memory is the host's, which "
        "device '",
        device_.Name(), "' is not"));
  if (states_ != nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(artifact_->path(),
                     ": numbers can be traced if optimizer states are in "
                     "memory, found them in a file; leave the folder for "
                     "them out, or compile with offload: optimizer"));
  if (!TellsTypes(artifact_->program()))
    return absl::FailedPreconditionError(absl::StrCat(
        artifact_->path(),
        ": the program does not tell the types of what its steps compute; "
        "compile the model again with this version"));
  nan_trace_ = std::make_unique<NanTrace>(
      [this](int64_t step) { return main_->DescribeStep(step); });
  return absl::OkStatus();
}

void Executor::ForEachParameter(bool updated_only,
                                const VisitParameter& visit) const {
  for (const ParameterSpec& spec : parameters_) {
    if (updated_only && !spec.updated) continue;
    const program::Parameter& parameter =
        *artifact_->program().parameters()->Get(
            static_cast<unsigned>(spec.index));
    const char* data = weights_->globals()[spec.index].data;
    if (data == nullptr) continue;
    const int64_t size = base::SizeOf(spec.local.dtype);
    NanTrace::Look worst;
    BlockMap(parameter.shard(), *parameter.type(), place_)
        .ForEachRun([&](int64_t, int64_t local, int64_t count) {
          NanTrace::Look look =
              NanTrace::At(spec.local.dtype, data + local * size, count);
          look.element += local;
          if (look.kind > worst.kind) worst = look;
        });
    visit(spec, data, worst);
  }
}

void Executor::TraceSources() {
  nan_trace_->Begin();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const void* data = ports_[i].current;
    const NanTrace::Look look =
        NanTrace::At(inputs_[i].dtype, data,
                     inputs_[i].bytes / base::SizeOf(inputs_[i].dtype));
    nan_trace_->AddSource(absl::StrCat("input '", inputs_[i].name, "'"), data,
                          inputs_[i].bytes, look);
  }
  // Includes frozen parameters. Constants may be infinite, as masks are.
  ForEachParameter(
      /*updated_only=*/false, [&](const ParameterSpec& spec, const void* data,
                                  const NanTrace::Look& look) {
        if (spec.kind == program::ParameterKind::constant) return;
        nan_trace_->AddSource(absl::StrCat("parameter '", spec.local.name, "'"),
                              data, spec.local.bytes, look);
      });
}

void Executor::TraceOutcomes() {
  size_t loss = 0;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].name == "loss") loss = i;
  if (loss < outputs_.size()) {
    const TensorSpec& spec = outputs_[loss];
    const void* data = ports_[inputs_.size() + loss].current;
    nan_trace_->AddOutcome(
        data, spec.bytes,
        NanTrace::At(spec.dtype, data, spec.bytes / base::SizeOf(spec.dtype))
            .kind);
  }
  ForEachParameter(/*updated_only=*/true,
                   [&](const ParameterSpec& spec, const void* data,
                       const NanTrace::Look& look) {
                     nan_trace_->AddOutcome(data, spec.local.bytes, look.kind);
                   });
}

std::optional<NonFinite> Executor::FindNonFinite(NumberKind kind) const {
  std::optional<NonFinite> found = nan_trace_->Find(kind);
  if (found && program::SizeOf(artifact_->program().mesh()) > 1)
    found->text = absl::StrCat(place_.Describe(), ": ", found->text);
  return found;
}

}  // namespace partita::executor
