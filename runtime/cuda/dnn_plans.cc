// Asks cuDNN's heuristics for engines and prepares the acceptable ones.
#include "runtime/cuda/dnn_plans.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

constexpr size_t kCandidates = 8;

// All ranks must get the same bits at every run, so nondeterministic and
// rounding engines are excluded.
bool MayTake(const DnnDescriptor& engine, bool tensor_cores) {
  std::array<DnnNote, kDnnMaxNotes> notes = {};
  const absl::StatusOr<int64_t> count =
      engine.Get(kDnnEngineNotes, kDnnTypeNote, notes.data(), kDnnMaxNotes);
  // An engine without notes may do anything.
  if (!count.ok()) return false;
  return std::none_of(
      notes.begin(), notes.begin() + std::min<int64_t>(*count, kDnnMaxNotes),
      [&](DnnNote note) {
        return note == kDnnNondeterministic || note == kDnnRoundsInputs ||
               note == kDnnRoundsSums ||
               (note == kDnnTensorCores && !tensor_cores);
      });
}

bool IsLate(const DnnPlanRequest& request) {
  return request.has_time != nullptr && !request.has_time();
}

// Appends acceptable plans, up to kCandidates in total, and counts those that
// it tried to prepare. An error means a failure, not merely unsuitable engines;
// plans may have been appended even then.
absl::Status Ask(const Dnn& dnn, const DnnDescriptor& graph,
                 const DnnDescriptor* gpu, const DnnPlanRequest& request,
                 int mode, std::vector<DnnPlan>& plans, int& tried) {
  absl::Status wrong;
  const auto fails = [&](const absl::Status& status) {
    if (!absl::IsUnimplemented(status)) wrong.Update(status);
    return !status.ok();
  };
  DnnDescriptor heuristics(dnn, kDnnHeuristics);
  heuristics.Set(kDnnHeuristicsGraph, graph);
  heuristics.Set(kDnnHeuristicsMode, kDnnTypeHeuristicsMode, &mode);
  if (gpu != nullptr) heuristics.Set(kDnnHeuristicsGpu, *gpu);
  if (fails(heuristics.Finalize("looking for an algorithm"))) return wrong;
  std::vector<std::unique_ptr<DnnDescriptor>> configs;
  std::vector<DnnObject> objects;
  // Asks for more than kCandidates, because some are unsuitable.
  while (configs.size() < 4 * kCandidates) {
    configs.push_back(std::make_unique<DnnDescriptor>(dnn, kDnnEngineConfig));
    objects.push_back(configs.back()->get());
  }
  const absl::StatusOr<int64_t> count =
      heuristics.Get(kDnnHeuristicsResults, kDnnTypeObject, objects.data(),
                     static_cast<int64_t>(objects.size()));
  if (fails(count.status())) return wrong;
  std::map<int64_t, int> seen;
  for (size_t i = 0;
       i < std::min(configs.size(), static_cast<size_t>(*count)) &&
       plans.size() < kCandidates;
       ++i) {
    DnnDescriptor engine(dnn, kDnnEngine);
    DnnObject object = engine.get();
    int64_t index = -1;
    if (fails(configs[i]
                  ->Get(kDnnConfigEngine, kDnnTypeObject, &object)
                  .status()) ||
        fails(engine.Get(kDnnEngineIndex, kDnnTypeInt64, &index).status()))
      continue;
    const int which = seen[index]++;
    if (!MayTake(engine, request.tensor_cores)) continue;
    DnnPlan plan;
    plan.name = absl::StrCat("mode", mode, "-engine", index, "-", which);
    if (!request.name.empty() && plan.name != request.name) continue;
    if (tried > 0 && IsLate(request)) break;
    ++tried;
    plan.plan = std::make_unique<DnnDescriptor>(dnn, kDnnPlan);
    if (gpu == nullptr)
      plan.plan->Set(kDnnPlanHandle, kDnnTypeHandle, &dnn.handle);
    else
      plan.plan->Set(kDnnPlanGpu, *gpu);
    plan.plan->Set(kDnnPlanConfig, *configs[i]);
    if (fails(plan.plan->Finalize("preparing an algorithm"))) continue;
    if (fails(plan.plan
                  ->Get(kDnnPlanWorkspaceBytes, kDnnTypeInt64,
                        &plan.workspace_bytes)
                  .status()) ||
        plan.workspace_bytes > request.workspace_bytes)
      continue;
    plan.config = std::move(configs[i]);
    plans.push_back(std::move(plan));
  }
  return wrong;
}

}  // namespace

absl::StatusOr<std::vector<DnnPlan>> FindPlans(const Dnn& dnn,
                                               const DnnDescriptor& graph,
                                               const DnnDescriptor* gpu,
                                               const DnnPlanRequest& request) {
  std::vector<DnnPlan> plans;
  int tried = 0;
  absl::Status wrong =
      Ask(dnn, graph, gpu, request, kDnnHeuristicsBest, plans, tried);
  if (plans.empty() && tried > 0 && IsLate(request))
    return absl::DeadlineExceededError(
        absl::StrCat("no plan of this ", request.what, " among the first ",
                     tried, " could be prepared, and no time is left"));
  if (plans.empty())
    wrong.Update(
        Ask(dnn, graph, gpu, request, kDnnHeuristicsFallback, plans, tried));
  if (plans.empty()) PARTITA_RETURN_IF_ERROR(wrong);
  if (plans.empty())
    return absl::UnimplementedError(absl::StrCat(
        "cuDNN has no algorithm for this ", request.what,
        " that gives the same bits each time, in the precision asked for"));
  return plans;
}

absl::Status RunPlan(const Dnn& dnn, const DnnPlan& plan, DnnStream stream,
                     const std::vector<int64_t>& ids,
                     const std::vector<void*>& pointers, void* workspace,
                     const char* doing) {
  DnnDescriptor pack(dnn, kDnnPack);
  pack.Set(kDnnPackIds, ids);
  pack.Set(kDnnPackPointers, kDnnTypePointer, pointers.data(),
           static_cast<int64_t>(pointers.size()));
  pack.Set(kDnnPackWorkspace, kDnnTypePointer, &workspace);
  absl::Status status = pack.Finalize(doing);
  if (status.ok()) status = dnn.Check(dnn.SetStream(dnn.handle, stream), doing);
  if (status.ok())
    status =
        dnn.Check(dnn.Execute(dnn.handle, plan.plan->get(), pack.get()), doing);
  return status.ok() ? status
                     : absl::InternalError(std::string(status.message()));
}

absl::StatusOr<std::unique_ptr<DnnDescriptor>> DescribeGpu(
    const Dnn& dnn, const std::string& json) {
  auto gpu = std::make_unique<DnnDescriptor>(dnn, kDnnGpu);
  gpu->Set(kDnnGpuJson, kDnnTypeChar, json.data(),
           static_cast<int64_t>(json.size()));
  PARTITA_RETURN_IF_ERROR(gpu->Finalize("describing a GPU"));
  return gpu;
}

}  // namespace partita::cuda
