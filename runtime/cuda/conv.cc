// cuDNN wants weights in the layout of the activations. With channels last the
// weight is therefore rearranged through the scratch, unless a single kernel
// position or a single channel makes both layouts the same.
#include "runtime/cuda/conv.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/trial.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using device::ConvDesc;
using device::ConvDirection;

constexpr size_t kCandidates = 8;
constexpr int64_t kAlignment = 256;  // of parts of the scratch, in bytes
// Alignment of tensors in bytes. Our own kernel convolves the rare tensors with
// less.
constexpr int64_t kTensorAlignment = 16;

// The convolution's tensors. Their unique ids are these values plus 1.
enum Role : size_t { kInput = 0, kWeight, kOutput };
constexpr size_t kRoles = 3;

int64_t Product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

int64_t RoundUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

DnnDataType TypeOf(base::DType dtype) {
  return dtype == base::DType::kF32   ? kDnnF32
         : dtype == base::DType::kF16 ? kDnnF16
                                      : kDnnBF16;
}

// Reorders a stored shape to [n, c, spatial...].
std::vector<int64_t> ChannelsSecond(std::vector<int64_t> shape,
                                    bool channels_last) {
  if (channels_last)
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

// Strides of dense memory, for dimensions [n, c, spatial...].
std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims,
                               bool channels_last) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = channels_last ? dims[1] : 1;
  for (size_t d = dims.size(); d-- > 2;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  strides[1] = channels_last ? 1 : stride;
  strides[0] = channels_last ? stride : stride * dims[1];
  return strides;
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

// The library needs at least two spatial dimensions.
ConvDesc AtLeastTwoSpatial(ConvDesc desc) {
  if (desc.strides.size() != 1) return desc;
  const auto insert = [](std::vector<int64_t>& values, size_t at, int64_t one) {
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), one);
  };
  const size_t first = desc.channels_last ? 1 : 2;
  insert(desc.input_shape, first, 1);
  insert(desc.out_shape, first, 1);
  insert(desc.weight_shape, 2, 1);
  insert(desc.strides, 0, 1);
  insert(desc.dilations, 0, 1);
  insert(desc.low, 0, 0);
  insert(desc.high, 0, 0);
  return desc;
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

// An engine that the library has prepared for the operation.
struct Plan {
  std::unique_ptr<DnnDescriptor> config, plan;
  std::string name;
  int64_t workspace_bytes = 0;
};

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
  absl::Status MakeTensor(Role role, const std::vector<int64_t>& dims,
                          bool channels_last);
  absl::Status MakeTensors();
  absl::Status MakeOperation();
  absl::Status MakeGraph();
  // Appends acceptable plans, up to kCandidates in total. An error means a
  // failure, not merely unsuitable engines; plans may have been appended even
  // then.
  absl::Status Ask(int mode, std::vector<Plan>& plans) const;
  bool MayTake(const DnnDescriptor& engine) const;
  void PreparePacking();
  absl::Status PrepareFinish();
  Tuner::Run PrepareTrial(const std::vector<Plan>& plans,
                          std::shared_ptr<Trial> memory) const;
  absl::Status Execute(CuStream stream, const Plan& plan,
                       const std::array<void*, kRoles>& tensors,
                       void* workspace) const;
  // Copies the weight from the stored layout to the library's, or back.
  absl::Status PackWeight(CuStream stream, const void* from, void* to,
                          bool back) const;

  const Dnn& dnn_;
  const std::shared_ptr<const OwnKernels> kernels_;
  const ConvDesc desc_;
  const std::array<int, kRoles> operand_;
  std::array<std::unique_ptr<DnnDescriptor>, kRoles> tensors_;
  std::unique_ptr<DnnDescriptor> convolution_, operation_, graph_;
  Plan plan_;
  bool packs_ = false;
  CopyBoxArgs pack_ = {};
  int64_t packed_bytes_ =
      0;  // size of the weight copy at the start of the scratch
  CuFunction pack_function_ = nullptr;
  std::unique_ptr<CudaOp> own_;
  ConvArgs finish_ = {};
  CuFunction finish_function_ = nullptr;  // null: nothing to finish
};

absl::Status DnnConv::MakeTensor(Role role, const std::vector<int64_t>& dims,
                                 bool channels_last) {
  auto tensor = std::make_unique<DnnDescriptor>(dnn_, kDnnTensor);
  const DnnDataType type = TypeOf(desc_.dtype);
  const int64_t id = static_cast<int64_t>(role) + 1;
  const int64_t alignment = kTensorAlignment;
  tensor->Set(kDnnTensorType, kDnnTypeDataType, &type);
  tensor->Set(kDnnTensorDims, dims);
  tensor->Set(kDnnTensorStrides, StridesOf(dims, channels_last));
  tensor->Set(kDnnTensorId, kDnnTypeInt64, &id);
  tensor->Set(kDnnTensorAlignment, kDnnTypeInt64, &alignment);
  tensors_[role] = std::move(tensor);
  return tensors_[role]->Finalize("describing a tensor");
}

absl::Status DnnConv::MakeTensors() {
  const bool last = desc_.channels_last;
  PARTITA_RETURN_IF_ERROR(
      MakeTensor(kInput, ChannelsSecond(desc_.input_shape, last), last));
  PARTITA_RETURN_IF_ERROR(MakeTensor(kWeight, desc_.weight_shape, last));
  return MakeTensor(kOutput, ChannelsSecond(desc_.out_shape, last), last);
}

absl::Status DnnConv::MakeOperation() {
  convolution_ = std::make_unique<DnnDescriptor>(dnn_, kDnnConvolution);
  const DnnDataType compute = kDnnF32;
  const int mode = kDnnCrossCorrelation;
  const int64_t spatial = static_cast<int64_t>(desc_.strides.size());
  convolution_->Set(kDnnComputeType, kDnnTypeDataType, &compute);
  convolution_->Set(kDnnMode, kDnnTypeConvolutionMode, &mode);
  convolution_->Set(kDnnSpatialDims, kDnnTypeInt64, &spatial);
  convolution_->Set(kDnnStrides, desc_.strides);
  convolution_->Set(kDnnDilations, desc_.dilations);
  convolution_->Set(kDnnPaddingBefore, desc_.low);
  convolution_->Set(kDnnPaddingAfter, desc_.high);
  PARTITA_RETURN_IF_ERROR(convolution_->Finalize("describing a convolution"));
  const auto [kind, first] =
      desc_.direction == ConvDirection::kForward
          ? std::pair(kDnnForward, kDnnForwardAlpha)
      : desc_.direction == ConvDirection::kInputGrad
          ? std::pair(kDnnInputGradient, kDnnInputGradientAlpha)
          : std::pair(kDnnWeightGradient, kDnnWeightGradientAlpha);
  const auto attribute = [first = first](int i) {
    return static_cast<DnnAttribute>(first + i);
  };
  const float alpha = 1, beta = 0;
  operation_ = std::make_unique<DnnDescriptor>(dnn_, kind);
  operation_->Set(attribute(0), kDnnTypeFloat, &alpha);
  operation_->Set(attribute(1), kDnnTypeFloat, &beta);
  operation_->Set(attribute(2), *convolution_);
  operation_->Set(attribute(3), *tensors_[kWeight]);
  operation_->Set(attribute(4), *tensors_[kInput]);
  operation_->Set(attribute(5), *tensors_[kOutput]);
  return operation_->Finalize("describing a convolution");
}

absl::Status DnnConv::MakeGraph() {
  graph_ = std::make_unique<DnnDescriptor>(dnn_, kDnnGraph);
  graph_->Set(kDnnGraphHandle, kDnnTypeHandle, &dnn_.handle);
  graph_->Set(kDnnGraphOperations, *operation_);
  return graph_->Finalize("preparing a convolution");
}

// All ranks must get the same bits at every run, so nondeterministic and
// rounding engines are excluded.
bool DnnConv::MayTake(const DnnDescriptor& engine) const {
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
               (note == kDnnTensorCores && desc_.dtype == base::DType::kF32);
      });
}

absl::Status DnnConv::Ask(int mode, std::vector<Plan>& plans) const {
  absl::Status wrong;
  const auto fails = [&](const absl::Status& status) {
    if (!absl::IsUnimplemented(status)) wrong.Update(status);
    return !status.ok();
  };
  DnnDescriptor heuristics(dnn_, kDnnHeuristics);
  heuristics.Set(kDnnHeuristicsGraph, *graph_);
  heuristics.Set(kDnnHeuristicsMode, kDnnTypeHeuristicsMode, &mode);
  if (fails(heuristics.Finalize("looking for an algorithm"))) return wrong;
  std::vector<std::unique_ptr<DnnDescriptor>> configs;
  std::vector<DnnObject> objects;
  // Asks for more than kCandidates, because some are unsuitable.
  while (configs.size() < 4 * kCandidates) {
    configs.push_back(std::make_unique<DnnDescriptor>(dnn_, kDnnEngineConfig));
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
    DnnDescriptor engine(dnn_, kDnnEngine);
    DnnObject object = engine.get();
    int64_t index = -1;
    if (fails(configs[i]
                  ->Get(kDnnConfigEngine, kDnnTypeObject, &object)
                  .status()) ||
        fails(engine.Get(kDnnEngineIndex, kDnnTypeInt64, &index).status()))
      continue;
    const int which = seen[index]++;
    if (!MayTake(engine)) continue;
    Plan plan;
    plan.name = absl::StrCat("mode", mode, "-engine", index, "-", which);
    plan.plan = std::make_unique<DnnDescriptor>(dnn_, kDnnPlan);
    plan.plan->Set(kDnnPlanHandle, kDnnTypeHandle, &dnn_.handle);
    plan.plan->Set(kDnnPlanConfig, *configs[i]);
    if (fails(plan.plan->Finalize("preparing an algorithm"))) continue;
    if (fails(plan.plan
                  ->Get(kDnnPlanWorkspaceBytes, kDnnTypeInt64,
                        &plan.workspace_bytes)
                  .status()) ||
        plan.workspace_bytes > program::kConvolutionWorkspaceBytes)
      continue;
    plan.config = std::move(configs[i]);
    plans.push_back(std::move(plan));
  }
  return wrong;
}

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
  PARTITA_RETURN_IF_ERROR(MakeTensors());
  PARTITA_RETURN_IF_ERROR(MakeOperation());
  PARTITA_RETURN_IF_ERROR(MakeGraph());
  PARTITA_RETURN_IF_ERROR(PrepareFinish());
  PARTITA_ASSIGN_OR_RETURN(own_, MakeOwnConv(kernels_, desc_));
  PreparePacking();
  PARTITA_ASSIGN_OR_RETURN(pack_function_, kernels_->Find("partita_copy_box"));
  std::vector<Plan> plans;
  absl::Status wrong = Ask(kDnnHeuristicsBest, plans);
  if (plans.empty()) wrong.Update(Ask(kDnnHeuristicsFallback, plans));
  if (plans.empty()) PARTITA_RETURN_IF_ERROR(wrong);
  if (plans.empty())
    return absl::UnimplementedError(
        "cuDNN has no algorithm for this convolution that gives the same bits "
        "each time, in the precision asked for");
  std::vector<std::string> names;
  for (const Plan& plan : plans) names.push_back(plan.name);
  const size_t best = tuner.Choose(Describe(dnn_, desc_), names, [&] {
    return PrepareTrial(plans, std::make_shared<Trial>(tuner.context()));
  });
  plan_ = std::move(plans[best]);
  scratch_bytes_ = packed_bytes_ + plan_.workspace_bytes;
  return absl::OkStatus();
}

// Returns null if there is not enough memory.
Tuner::Run DnnConv::PrepareTrial(const std::vector<Plan>& plans,
                                 std::shared_ptr<Trial> memory) const {
  const int64_t size = base::SizeOf(desc_.dtype);
  int64_t workspace_bytes = 0;
  for (const Plan& plan : plans)
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

absl::Status DnnConv::Execute(CuStream stream, const Plan& plan,
                              const std::array<void*, kRoles>& tensors,
                              void* workspace) const {
  DnnDescriptor pack(dnn_, kDnnPack);
  pack.Set(kDnnPackIds, {1, 2, 3});
  pack.Set(kDnnPackPointers, kDnnTypePointer, tensors.data(), kRoles);
  pack.Set(kDnnPackWorkspace, kDnnTypePointer, &workspace);
  absl::Status status = pack.Finalize("convolving");
  if (status.ok())
    status = dnn_.Check(dnn_.SetStream(dnn_.handle, stream), "convolving");
  if (status.ok())
    status = dnn_.Check(dnn_.Execute(dnn_.handle, plan.plan->get(), pack.get()),
                        "convolving");
  return status.ok() ? status
                     : absl::InternalError(std::string(status.message()));
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
