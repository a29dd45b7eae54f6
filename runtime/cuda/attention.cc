// The tuner's first choice is the launch, so that a program without
// measurements runs as it was compiled.
#include "runtime/cuda/attention.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/attention_graph.h"
#include "runtime/cuda/trial.h"

namespace partita::cuda {
namespace {

using device::AttentionDesc;

constexpr char kLaunch[] = "launch";

std::string Describe(const AttentionDesc::Tensor& tensor) {
  return absl::StrCat(tensor.offset, ":", absl::StrJoin(tensor.strides, ","));
}

// The key of the tuner's choice. The shape of the launch stands for the
// compiler's kernel, with which the library was compared.
std::string Describe(const Dnn& dnn, const AttentionDesc& desc,
                     const AttentionLaunch& launch) {
  return absl::StrCat(
      "attention ", base::NameOf(desc.dtype), " ", desc.batch, " heads ",
      desc.heads, "/", desc.groups, " positions ", desc.queries, ",", desc.keys,
      " sizes ", desc.size, ",", desc.value_size,
      desc.causal ? absl::StrCat(" causal ", desc.causal_offset) : "",
      desc.lse < 0 ? "" : " lse", " q ", Describe(desc.q), " k ",
      Describe(desc.k), " v ", Describe(desc.v), " out ", Describe(desc.out),
      " launch ", absl::StrJoin(launch.shape.grid, ","), " of ",
      absl::StrJoin(launch.shape.block, ","), " with ",
      launch.shape.shared_bytes, ",", launch.shape.scratch_bytes, " cuDNN ",
      dnn.Version());
}

class DnnAttention : public CudaOp {
 public:
  DnnAttention(std::unique_ptr<AttentionGraph> graph, DnnPlan plan,
               AttentionLaunch launch)
      : CudaOp(static_cast<int>(launch.operand_bytes.size())),
        graph_(std::move(graph)),
        plan_(std::move(plan)),
        launch_(std::move(launch)) {
    scratch_bytes_ =
        std::max(plan_.workspace_bytes, launch_.shape.scratch_bytes);
  }
  std::string Description() const override { return "cuDNN"; }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override {
    if (graph_->IsAligned(buffers))
      return graph_->Run(plan_, stream, buffers, scratch);
    return launch_.kernel.Launch(
        stream, launch_.shape, buffers, operands(),
        launch_.shape.scratch_bytes == 0 ? nullptr : scratch);
  }

 private:
  const std::unique_ptr<AttentionGraph> graph_;
  const DnnPlan plan_;
  const AttentionLaunch launch_;
};

// Preparing a plan compiles it: 0.3 s of cuDNN 9.19 on a Xeon. A known plan is
// prepared alone, unless the library has it no longer. Otherwise one plan is
// prepared, and more during half of the time that is left; the rest is for
// measuring them.
absl::StatusOr<std::vector<DnnPlan>> PreparePlans(const AttentionGraph& graph,
                                                  const std::string& known,
                                                  Tuner& tuner) {
  if (!known.empty()) {
    auto plans = graph.Plans(known);
    if (plans.ok()) return plans;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::steady_clock::now() - begin; };
  auto plans = graph.Plans("", [&] { return spent() < tuner.left() / 2; });
  tuner.Spend(spent());
  return plans;
}

// Choice 0 is the launch, the others are the plans. Returns null if there is
// not enough memory.
Tuner::Run PrepareTrial(const AttentionGraph& graph,
                        const std::vector<DnnPlan>& plans,
                        const AttentionLaunch& launch,
                        std::shared_ptr<Trial> memory) {
  std::vector<void*> buffers;
  for (const int64_t bytes : launch.operand_bytes)
    buffers.push_back(memory->Make(bytes));
  int64_t scratch_bytes = launch.shape.scratch_bytes;
  for (const DnnPlan& plan : plans)
    scratch_bytes = std::max(scratch_bytes, plan.workspace_bytes);
  void* const scratch = memory->Make(scratch_bytes);
  if (scratch == nullptr ||
      std::count(buffers.begin(), buffers.end(), nullptr) > 0)
    return nullptr;
  return [=, &graph, &plans, &launch](size_t index, CuStream stream) {
    static_cast<void>(memory);  // freed with this function
    if (index > 0)
      return graph.Run(plans[index - 1], stream, buffers.data(), scratch);
    return launch.kernel.Launch(
        stream, launch.shape, buffers.data(), static_cast<int>(buffers.size()),
        launch.shape.scratch_bytes == 0 ? nullptr : scratch);
  };
}

}  // namespace

bool IsLaunchKept(const Dnn& dnn, const Tuner& tuner, const AttentionDesc& desc,
                  const AttentionLaunch& launch) {
  return tuner.Known(Describe(dnn, desc, launch)) == kLaunch;
}

absl::StatusOr<std::unique_ptr<CudaOp>> MakeDnnAttention(
    const Dnn& dnn, Tuner& tuner, const AttentionDesc& desc,
    AttentionLaunch launch, bool may_launch) {
  const std::string key =
      Describe(dnn, desc, launch) + (may_launch ? "" : " alone");
  const std::string known = tuner.Known(key);
  if (may_launch && known.empty() && tuner.left().count() <= 0)
    return std::unique_ptr<CudaOp>();
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<AttentionGraph> graph,
                           AttentionGraph::Make(dnn, desc));
  PARTITA_ASSIGN_OR_RETURN(std::vector<DnnPlan> plans,
                           PreparePlans(*graph, known, tuner));
  std::vector<std::string> names;
  if (may_launch) names.push_back(kLaunch);
  for (const DnnPlan& plan : plans) names.push_back(plan.name);
  // Numbers the plans from 1, also if the launch is no choice.
  const size_t first = may_launch ? 0 : 1;
  const auto prepare = [&]() -> Tuner::Run {
    Tuner::Run run = PrepareTrial(*graph, plans, launch,
                                  std::make_shared<Trial>(tuner.context()));
    if (run == nullptr || first == 0) return run;
    return [run, first](size_t index, CuStream stream) {
      return run(first + index, stream);
    };
  };
  const size_t best = tuner.Choose(key, names, prepare);
  if (first + best == 0) return std::unique_ptr<CudaOp>();
  const int cold = tuner.cold();
  tuner.Warm({best}, prepare);
  if (tuner.cold() > cold) return std::unique_ptr<CudaOp>();
  return std::unique_ptr<CudaOp>(std::make_unique<DnnAttention>(
      std::move(graph), std::move(plans[first + best - 1]), std::move(launch)));
}

}  // namespace partita::cuda
