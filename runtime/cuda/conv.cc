// cuDNN wants weights in the layout of the activations. With channels last the
// weight is therefore rearranged through the scratch, unless a single kernel
// position or a single channel makes both layouts the same.
#include "runtime/cuda/conv.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/conv_graph.h"
#include "runtime/cuda/trial.h"

namespace partita::cuda {
namespace {

using device::ConvDesc;
using device::ConvDirection;

constexpr int64_t kAlignment = 256;  // of parts of the scratch, in bytes

int64_t Product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

int64_t RoundUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The operand of the instruction for each tensor. The last operand is the
// result.
std::array<int, kRoles> OperandsOf(const ConvDesc& desc, int count) {
  switch (desc.direction) {
    case ConvDirection::kInputGrad:  // out's gradient, weight
      return {count - 1, 1, 0};
    case ConvDirection::kWeightGrad:  // input, out's gradient
      return {0, count - 1, 1};
    case ConvDirection::kForward:
      break;
  }
  return {0, 1, count - 1};
}

std::string Describe(const Dnn& dnn, const ConvDesc& desc) {
  const auto list = [](const std::vector<int64_t>& values) {
    return absl::StrJoin(values, ",");
  };
  return absl::StrCat(
      "conv ", base::NameOf(desc.dtype), " ", static_cast<int>(desc.direction),
      " ", list(desc.input_shape), " ", list(desc.weight_shape), " ",
      list(desc.out_shape), " strides ", list(desc.strides), " dilations ",
      list(desc.dilations), " low ", list(desc.low), " high ", list(desc.high),
      " groups ", desc.groups, desc.channels_last ? " channels last" : "",
      " cuDNN ", dnn.Version());
}

class DnnConv : public CudaOp {
 public:
  DnnConv(const Dnn& dnn, std::shared_ptr<const OwnKernels> kernels,
          const ConvDesc& desc)
      : CudaOp(device::OperandCount(desc.has_bias, desc.has_residual)),
        dnn_(dnn),
        kernels_(std::move(kernels)),
        desc_(AtLeastTwoSpatial(desc)),
        operand_(OperandsOf(desc, operands())) {}

  absl::Status Prepare(Tuner& tuner);
  std::string Description() const override {
    return finish_function_ == nullptr ? "cuDNN" : "cuDNN and own kernel";
  }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override;

 private:
  void PreparePacking();
  absl::Status PrepareFinish();
  Tuner::Run PrepareTrial(const std::vector<DnnPlan>& plans,
                          std::shared_ptr<Trial> memory) const;
  absl::Status Execute(CuStream stream, const DnnPlan& plan,
                       const std::array<void*, kRoles>& tensors,
                       void* workspace) const;
  // Copies the weight from the stored layout to the library's, or back.
  absl::Status PackWeight(CuStream stream, const void* from, void* to,
                          bool back) const;

  const Dnn& dnn_;
  const std::shared_ptr<const OwnKernels> kernels_;
  const ConvDesc desc_;
  const std::array<int, kRoles> operand_;
  std::unique_ptr<ConvGraph> graph_;
  DnnPlan plan_;
  bool packs_ = false;
  CopyBoxArgs pack_ = {};
  int64_t packed_bytes_ =
      0;  // size of the weight copy at the start of the scratch
  CuFunction pack_function_ = nullptr;
  std::unique_ptr<CudaOp> own_;
  ConvArgs finish_ = {};
  CuFunction finish_function_ = nullptr;  // null: nothing to finish
};

// The weight is stored as [o, c, k]. With channels last the library wants [o,
// k, c].
void DnnConv::PreparePacking() {
  const int64_t o = desc_.weight_shape[0], c = desc_.weight_shape[1];
  const int64_t k = Product(desc_.weight_shape) / (o * c);
  packs_ = desc_.channels_last && c > 1 && k > 1;
  if (!packs_) return;
  const int64_t size = base::SizeOf(desc_.dtype);
  const std::array<Int, 3> counts = {o, k, c};
  const std::array<Int, 3> stored = {c * k * size, size, k * size};
  const std::array<Int, 3> wanted = {c * k * size, c * size, size};
  std::copy(counts.begin(), counts.end(), pack_.counts);
  std::copy(stored.begin(), stored.end(), pack_.from_strides);
  std::copy(wanted.begin(), wanted.end(), pack_.to_strides);
  pack_.unit = static_cast<int>(size);
  pack_.units = 1;
  pack_.count = o * c * k;
  packed_bytes_ = RoundUp(o * c * k * size);
}

absl::Status DnnConv::PackWeight(CuStream stream, const void* from, void* to,
                                 bool back) const {
  CopyBoxArgs args = pack_;
  if (back)
    for (int d = 0; d < 3; ++d)
      std::swap(args.from_strides[d], args.to_strides[d]);
  args.from = static_cast<const char*>(from);
  args.to = static_cast<char*>(to);
  return kernels_->Launch(stream, pack_function_, &args, args.count);
}

absl::Status DnnConv::PrepareFinish() {
  if (!desc_.has_bias && !desc_.has_residual &&
      desc_.activation == device::Activation::kNone)
    return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(finish_, ToConvArgs(desc_));
  PARTITA_ASSIGN_OR_RETURN(finish_function_,
                           kernels_->Find("partita_finish_conv"));
  return absl::OkStatus();
}

absl::Status DnnConv::Prepare(Tuner& tuner) {
  PARTITA_ASSIGN_OR_RETURN(graph_, ConvGraph::Make(dnn_, desc_));
  PARTITA_RETURN_IF_ERROR(PrepareFinish());
  PARTITA_ASSIGN_OR_RETURN(own_, MakeOwnConv(kernels_, desc_));
  PreparePacking();
  PARTITA_ASSIGN_OR_RETURN(pack_function_, kernels_->Find("partita_copy_box"));
  PARTITA_ASSIGN_OR_RETURN(std::vector<DnnPlan> plans, graph_->Plans());
  std::vector<std::string> names;
  for (const DnnPlan& plan : plans) names.push_back(plan.name);
  const size_t best = tuner.Choose(Describe(dnn_, desc_), names, [&] {
    return PrepareTrial(plans, std::make_shared<Trial>(tuner.context()));
  });
  tuner.Warm({best}, [&] {
    return PrepareTrial(plans, std::make_shared<Trial>(tuner.context()));
  });
  plan_ = std::move(plans[best]);
  scratch_bytes_ = packed_bytes_ + plan_.workspace_bytes;
  return absl::OkStatus();
}

// Returns null if there is not enough memory.
Tuner::Run DnnConv::PrepareTrial(const std::vector<DnnPlan>& plans,
                                 std::shared_ptr<Trial> memory) const {
  const int64_t size = base::SizeOf(desc_.dtype);
  int64_t workspace_bytes = 0;
  for (const DnnPlan& plan : plans)
    workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes);
  const std::array<void*, kRoles> tensors = {
      memory->Make(Product(desc_.input_shape) * size),
      memory->Make(Product(desc_.weight_shape) * size),
      memory->Make(Product(desc_.out_shape) * size)};
  void* const workspace = memory->Make(workspace_bytes);
  if (std::count(tensors.begin(), tensors.end(), nullptr) > 0 ||
      workspace == nullptr)
    return nullptr;
  return [=, &plans](size_t index, CuStream stream) {
    static_cast<void>(memory);  // freed with this function
    return Execute(stream, plans[index], tensors, workspace);
  };
}

absl::Status DnnConv::Execute(CuStream stream, const DnnPlan& plan,
                              const std::array<void*, kRoles>& tensors,
                              void* workspace) const {
  return RunPlan(dnn_, plan, stream, {1, 2, 3},
                 {tensors.begin(), tensors.end()}, workspace, "convolving");
}

absl::Status DnnConv::Run(CuStream stream, void* const* buffers,
                          void* scratch) {
  std::array<void*, kRoles> tensors;
  for (size_t role = 0; role < kRoles; ++role) {
    tensors[role] = buffers[operand_[role]];
    if (reinterpret_cast<uintptr_t>(tensors[role]) % kTensorAlignment != 0)
      return own_->Run(stream, buffers, scratch);
  }
  void* const stored = tensors[kWeight];
  const bool gives_weight = desc_.direction == ConvDirection::kWeightGrad;
  if (packs_) {
    tensors[kWeight] = scratch;
    if (!gives_weight)
      PARTITA_RETURN_IF_ERROR(PackWeight(stream, stored, scratch, false));
  }
  PARTITA_RETURN_IF_ERROR(
      Execute(stream, plan_, tensors,
              plan_.workspace_bytes == 0
                  ? nullptr
                  : static_cast<char*>(scratch) + packed_bytes_));
  if (packs_ && gives_weight)
    PARTITA_RETURN_IF_ERROR(PackWeight(stream, scratch, stored, true));
  if (finish_function_ == nullptr) return absl::OkStatus();
  SetOperands(desc_, buffers, finish_);
  return kernels_->Launch(stream, finish_function_, &finish_, finish_.count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaOp>> MakeDnnConv(
    const Dnn& dnn, std::shared_ptr<const OwnKernels> kernels, Tuner& tuner,
    const ConvDesc& desc) {
  if (Product(desc.input_shape) == 0 || Product(desc.weight_shape) == 0 ||
      Product(desc.out_shape) == 0)
    return absl::UnimplementedError("a convolution without elements");
  auto conv = std::make_unique<DnnConv>(dnn, std::move(kernels), desc);
  PARTITA_RETURN_IF_ERROR(conv->Prepare(tuner));
  return std::unique_ptr<CudaOp>(std::move(conv));
}

}  // namespace partita::cuda
